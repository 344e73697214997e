"""One module per driver. Each defines `DRIVER`; `pillarbox.connections.registry` finds the modules by their folder."""
