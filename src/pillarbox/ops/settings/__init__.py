"""Settings: a file, the environment and flags become one checked value. Library code reads no environment; only this
package does.

    settings = current_settings()            of pillarbox.ops.cli.context, in a command; or
    settings = Settings.load(file: Path | None, environment, flags: {"relay.name": "till"})
    settings.store.url / .schema / .prefix / .keeps_history / .max_payload    a URL holds a password: never print it
    settings.record.max_payload / .duplicate / .wakeup
    settings.relay.enabled / .name / .preset / .config / .policy
    settings.transports / .destinations / .routes
    settings.entries                         every setting in force with its origin, passwords masked
    wiring.open_store(settings.store)        and make_outbox(settings), open_transports(settings), make_relay(…)

The flow: `sections`, `retrying` and `ways_out` describe every setting; `sources` finds what was written where;
`reading` takes the first value of each and checks it by its kind; `relations` checks what must fit together.
"""

from pillarbox.ops.settings.sections import StoreSettings
from pillarbox.ops.settings.settings import Settings, WrongSettings

__all__ = ["Settings", "StoreSettings", "WrongSettings"]
