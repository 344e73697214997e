"""The operators' half of a store, written once for all SQL engines: see `pillarbox.admin`."""
