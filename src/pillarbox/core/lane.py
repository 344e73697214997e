"""Ownership: lanes, leases and epochs.

A relay lives by one lease. It owns lanes, never rows. Each change of a lane's owner raises the lane's epoch,
and everything a relay writes names the epoch under which it took the lane: an older one writes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

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


class Lanes(Protocol):
    """Who works. One lease per relay; lanes change only with their owner."""

    count: int

    async def join(self, card: RelayCard, *, lease: float) -> None:
        """Begin to live: a row for this relay whose lease runs for `lease` seconds."""
        ...

    async def renew(
        self,
        relay: str,
        *,
        lease: float,
        in_hand: Sequence[InHand] = (),
        breakers: Mapping[str, str] = {},
        stalled: str = "",
    ) -> Renewal | None:
        """Live on, and tell the others what is in hand, how this relay's breakers stand (destination → state)
        and, if it is `stalled`, why it makes no progress.

        None means that the relay was declared dead: everything is lost, drop what is in hand. The connection that
        renews is the relay's session, by which others notice its death before its lease ends.
        """
        ...

    async def ended(self, relay: str) -> list[Session]:
        """The sessions of other relays that ended although their lease runs."""
        ...

    async def expire(self, sessions: Sequence[Session]) -> int:
        """End the leases of relays whose session, that very one, is still gone; returns how many.

        A relay that lives all the same has lost nothing before another one takes its lanes, under a new epoch.
        """
        ...

    async def session_ended(self) -> None:
        """Return once the session of the last renewal has ended; never where a store cannot tell."""
        ...

    async def take(self, relay: str, *, most: int) -> list[Lease]:
        """Take up to `most` lanes that are free or whose owner's lease ended; each under a new epoch.

        Never waits for a lane that somebody settles right now, and gives nothing to a relay that is not alive.
        A lane taken from an owner that did not leave counts one crash more.
        """
        ...

    async def release(self, relay: str, epochs: Epochs | None = None) -> None:
        """Give these lanes back; those under another epoch belong to another relay and stay.

        Without `epochs` the relay gives all its lanes back and leaves. To leave twice is fine.
        """
        ...
