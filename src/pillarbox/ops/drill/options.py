"""The options of a drill."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass

from pillarbox.core.errors import ConfigurationError
from pillarbox.ops.drill.fleet import Modules
from pillarbox.ops.drill.hooks import OutageHooks
from pillarbox.ops.drill.schedule import FaultKind


@dataclass(frozen=True, slots=True, kw_only=True)
class DrillOptions:
    """What a drill does. Raises ConfigurationError."""

    seed: int
    seconds: float = 60.0
    """Seconds of load."""
    rate: float = 300.0
    """Events per second, at most."""
    relays: int = 3
    keys: int = 200
    spared: int = 0
    """Relays that are never killed, frozen or drained, in addition: `make soak` measures their memory."""
    interval: float = 1.0
    """Mean seconds between the recovery from a fault and the next one."""
    kinds: Collection[FaultKind] = ()
    """Only these faults; empty: all that the target supports."""
    cut_database: str = ""
    restore_database: str = ""
    cut_broker: str = ""
    restore_broker: str = ""
    modules: Modules = Modules()

    def __post_init__(self) -> None:
        for name in ("seconds", "rate", "keys"):
            if not 0 < getattr(self, name) < math.inf:
                raise ConfigurationError(f"--{name} is {getattr(self, name):g}: it must be a number above zero")
        if not 0 <= self.interval < math.inf:
            raise ConfigurationError(f"--interval is {self.interval:g}: it must be zero or a number above it")
        if self.relays < 2:
            raise ConfigurationError(
                f"--relays is {self.relays}: a drill needs at least 2, so that one can take over from another"
            )
        if self.seed < 0:
            raise ConfigurationError(f"--seed is {self.seed}: it must not be negative")
        for hooks in (self.database_hooks, self.broker_hooks):
            hooks.check()

    def includes(self, kind: FaultKind) -> bool:
        """Whether this kind of fault is wanted."""
        return not self.kinds or kind in self.kinds

    @property
    def database_hooks(self) -> OutageHooks:
        return OutageHooks(what="database", cut=self.cut_database, restore=self.restore_database)

    @property
    def broker_hooks(self) -> OutageHooks:
        return OutageHooks(what="broker", cut=self.cut_broker, restore=self.restore_broker)
