"""Ownership: lanes, leases and epochs.

A relay lives by one lease. It owns lanes, never rows. Each change of a lane's owner raises the lane's epoch,
and everything a relay writes names the epoch under which it took the lane: an older one writes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

LANES = 64
"""How many lanes a store with many writers has: the most relays that can share the work."""

EVERY_RELAY = "*"
"""Instead of a relay: all that are alive."""

Epochs = Mapping[int, int]
"""Lane → epoch under which its owner acquired it: the fencing token of everything a relay writes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayCard:
    """How a relay registers. The id is random per process start; the name is only a label."""

    id: str
    name: str = ""
    host: str = ""
    version: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class InHand:
    """A message that has been in flight for longer than a second: shown as PROCESSING."""

    event_id: str
    destination: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """What a relay's heartbeat holds while its process is alive: a database session, or a lock on a file.

    A session that ended shows that the process is dead or disconnected; only the epochs decide who may write.
    """

    relay: str
    token: str
    """Which session of the relay it was: a heartbeat that reconnects has another one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Renewal:
    """A heartbeat that found the relay alive."""

    relays: int
    """Relays whose lease runs, this one included: the divisor of the fair share."""
    others: tuple[Mapping[str, str], ...] = ()
    """The breakers of each other relay (destination → state): which of them could send what this one cannot."""
    drain: bool = False
    """An operator asked this relay to drain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """A lane that a relay owns."""

    lane: int
    epoch: int
    crashes: int = 0
    """How often in a row the lane was taken from an owner whose lease ran out, without progress in between."""


def epochs_of(leases: Sequence[Lease]) -> dict[int, int]:
    """The fencing tokens of `leases`."""
    return {lease.lane: lease.epoch for lease in leases}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """The result of a fenced write."""

    held: frozenset[int]
    """The lanes of the write that the relay still owned; for all others nothing was written."""
    count: int
    """Rows written."""
    duplicates: int = 0
    """Messages whose (event id, destination) was already pending, dropped as duplicates."""
    lost: frozenset[int] = field(default=frozenset())
    """The lanes of the write that another relay owns: drop what is in flight for them."""
