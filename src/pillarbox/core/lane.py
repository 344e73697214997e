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
"""In place of a relay: all that live."""

Epochs = Mapping[int, int]
"""Lane → epoch under which its owner holds it: the fencing token of everything a relay writes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayCard:
    """How a relay introduces itself. The id is random per process start; the name is only a label."""

    id: str
    name: str = ""
    host: str = ""
    version: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class InHand:
    """A message that a relay has had in hand for longer than a second: shown as PROCESSING."""

    event_id: str
    destination: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """What a relay's heartbeat holds for as long as its process lives: a database session, or a lock on a file.

    A session that ended tells that the process is dead or cut off; only the epochs tell who may write.
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
    """How the breakers of each other one of them stand (destination → state): who could send what this one cannot."""
    drain: bool = False
    """A person asked this relay to drain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """A lane in one relay's hands."""

    lane: int
    epoch: int
    crashes: int = 0
    """How often in a row the lane was taken from an owner whose lease ran out, without progress in between."""


def epochs_of(leases: Sequence[Lease]) -> dict[int, int]:
    """The fencing tokens of `leases`."""
    return {lease.lane: lease.epoch for lease in leases}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """What became of a fenced write."""

    held: frozenset[int]
    """The lanes of the write that were still ours; for all others nothing was written."""
    count: int
    """Rows written."""
    duplicates: int = 0
    """Messages that met their own (event id, destination) already waiting and were dropped as repeats."""
    lost: frozenset[int] = field(default=frozenset())
    """The lanes of the write that somebody else owns by now: drop what is in hand for them."""
