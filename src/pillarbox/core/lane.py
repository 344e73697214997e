"""Lanes, leases and epochs: which relay may send and write.

A relay has one lease and owns lanes, not rows. Each change of owner increments the epoch of the lane. Every write of a
relay contains the epoch under which it acquired the lane; the store rejects writes with an older epoch (fencing).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

LANES = 64
"""The number of lanes of a store with many writers, and so the most relays that can share the work."""

EVERY_RELAY = "*"
"""In place of a relay id: all relays that are alive."""

Epochs = Mapping[int, int]
"""Lane → epoch under which its owner acquired it: the fencing token of everything a relay writes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayRegistration:
    """The registration of a relay. The id is random per start; the name is only a label."""

    id: str
    name: str = ""
    host: str = ""
    version: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class InFlightMessage:
    """A message that has been in flight for longer than a second: shown as PROCESSING."""

    event_id: str
    destination: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RelaySession:
    """What a relay's heartbeat holds while its process runs: a database session, or a lock on a file.

    If the session ends, the process has crashed or is disconnected. Only the epochs decide which relay may write.
    """

    relay: str
    token: str
    """Identifies one session of the relay: a heartbeat that reconnects has another one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Renewal:
    """The result of a heartbeat of a relay that is alive."""

    relays: int
    """Relays with a valid lease, this one included: the divisor of the fair share."""
    others: tuple[Mapping[str, str], ...] = ()
    """The breakers of each other relay (destination → state): another relay may reach a destination that this one
    cannot."""
    drain: bool = False
    """An operator asked this relay to drain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnedLane:
    """A lane that a relay owns."""

    lane: int
    epoch: int
    crashes: int = 0
    """How many owners in a row crashed: their lease expired before they settled anything or cleared the crashes."""


def epochs_of(lanes: Sequence[OwnedLane]) -> dict[int, int]:
    """The fencing tokens of these lanes."""
    return {owned.lane: owned.epoch for owned in lanes}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """The result of a fenced write."""

    count: int
    """Rows written."""
    duplicates: int = 0
    """Messages whose (event id, destination) was already pending, dropped as duplicates."""
    lost: frozenset[int] = field(default=frozenset())
    """The lanes of the write that this relay does not own: nothing was written, and what is in flight is void."""


class Lanes(Protocol):
    """Distributes the lanes among relays. Each relay has one lease."""

    count: int

    async def join(self, registration: RelayRegistration, *, lease: float) -> None:
        """Register the relay with a lease of `lease` seconds."""
        ...

    async def renew(
        self,
        relay: str,
        *,
        lease: float,
        in_flight: Sequence[InFlightMessage] = (),
        breakers: Mapping[str, str] = {},
        stalled: str = "",
    ) -> Renewal | None:
        """Renew the lease, and report the messages in flight, the breakers of this relay (destination → state) and, if
        it is `stalled`, why it makes no progress.

        None: the lease has expired. The relay owns no lane any more and must drop the messages in flight. The
        connection that renews is the relay's session, by which others detect its crash before the lease ends.
        """
        ...

    async def ended(self, relay: str) -> list[RelaySession]:
        """The sessions of other relays that ended although their lease is valid."""
        ...

    async def expire(self, sessions: Sequence[RelaySession]) -> int:
        """End the leases of relays that have not opened a new session since; returns how many.

        A relay that is still alive loses nothing until another one acquires its lanes under a new epoch.
        """
        ...

    async def session_ended(self) -> None:
        """Return when the session of the last renewal has ended; never, if the store cannot detect that."""
        ...

    async def acquire(self, relay: str, *, limit: int) -> list[OwnedLane]:
        """Acquire up to `limit` lanes that are free or whose owner's lease has expired; each under a new epoch.

        Skips lanes that another transaction has locked. Returns nothing for a relay that is not alive. A lane whose
        owner did not release it counts one more crash.
        """
        ...

    async def release(self, relay: str, epochs: Epochs | None = None) -> None:
        """Release these lanes; lanes with another epoch belong to another relay and stay.

        Without `epochs` the relay releases all its lanes and its registration. Calling it twice is fine.
        """
        ...

    async def clear_crashes(self, epochs: Epochs) -> None:
        """Forget the crashes of former owners of these lanes, as a settlement does; lanes with another epoch stay."""
        ...
