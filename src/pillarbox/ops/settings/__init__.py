"""Settings: a file, the environment and flags become one checked value. The library itself reads no environment.

    settings = Settings.load(file: Path | None, environment, flags: {"relay.name": "till"})
    settings.store.url / .schema / .prefix / .history / .ledger / .statement_timeout    a URL may hold a password
    settings.record.max_payload / .duplicate / .wakeup / .strict_order
    settings.relay.config: RelayConfig, .policy: RetryPolicy, .name / .preset / .listen / .health
    settings.transports / .destinations / .routes / .console / .logging
    settings.entries                         every setting in force with its origin, passwords masked

`pillarbox.settings` has the means to define a setting; the library's dataclasses define most of them. `sections`,
`transports` and `console` arrange them in tables (`tables`) and define the rest. `sources` finds what is written where,
`reading` takes the first value of each and checks it by its definition, `relations` checks values of several sections.
"""

from pillarbox.ops.settings.sections import StoreSettings
from pillarbox.ops.settings.settings import Settings

__all__ = ["Settings", "StoreSettings"]
