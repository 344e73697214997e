"""Replay: copies of delivered events are sent as new events that name their originals.

A copy has its own id, so that consumers handle it as a new event; the header `replayof` has the id of the original.
Copies keep the order of delivery of the originals, which is the order of each key. The same transaction writes a batch
of copies and the position that the replay has reached, in its entry of the audit: a replay that is resumed after a
crash copies nothing twice and leaves nothing out. A copy is replayed only by its id, never as part of a filter.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple, Protocol
from uuid import UUID, uuid5

from pillarbox.admin.listing import EventFilter, Position
from pillarbox.admin.states import EventState
from pillarbox.core.clock import timestamp
from pillarbox.core.errors import ConfigurationError, RecordError
from pillarbox.core.event import MAX_TEXT_BYTES, check_text
from pillarbox.core.message import Status

WHAT = "replay"
"""The action of a replay in the audit."""

HISTORY_SCANNED = 20_000
"""Rows of the history that one statement scans."""

BATCH_BYTES = 8 * 1024 * 1024
"""Bytes of payload that one statement copies, unless a single payload is larger."""

MOST_IDS = 1_000


class DeliveryPosition(NamedTuple):
    """The position of a delivered message in the order of delivery."""

    published_at: datetime
    id: int
    destination: str


FIRST = DeliveryPosition(datetime.min.replace(tzinfo=UTC), 0, "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """Which events to replay, where to, and how fast. Raises ConfigurationError for contradictory values."""

    wanted: EventFilter = field(default_factory=EventFilter)
    """By type, key, destination and time of recording."""
    until: datetime | None = None
    """Recorded before then."""
    event_ids: tuple[str, ...] = ()
    """Only these events, if any are named."""
    to: str | None = None
    """The one destination of all copies, each event once; None: the destinations of the originals."""
    rate: float | None = None
    """Copies per second at most."""
    most: int | None = None
    """At most this many events, the oldest first."""

    def __post_init__(self) -> None:
        wanted = self.wanted
        if wanted.status not in (None, Status.PUBLISHED) or wanted.state not in (None, EventState.PUBLISHED):
            raise ConfigurationError("only delivered events can be replayed: retry dead letters instead")
        if wanted.aggregate is not None or wanted.error is not None or wanted.until is not None:
            raise ConfigurationError("a replay is chosen by type, key, destination and time, or by ids")
        if wanted.since is not None and self.until is not None and wanted.since >= self.until:
            raise ConfigurationError(f"no event is recorded since {wanted.since} and before {self.until}: swap them")
        if self.rate is not None and not (self.rate > 0 and math.isfinite(self.rate)):
            raise ConfigurationError(f"a rate of {self.rate} per second replays nothing: use a rate above zero")
        if self.most is not None and self.most < 1:
            raise ConfigurationError(f"cannot replay at most {self.most} events: use a number of at least 1")
        if len(self.event_ids) > MOST_IDS:
            raise ConfigurationError(f"{len(self.event_ids)} ids are too many for one replay: name at most {MOST_IDS}")
        if self.to is not None:
            try:
                check_text("destination", self.to, MAX_TEXT_BYTES)
            except RecordError as error:
                raise ConfigurationError(str(error)) from None

    @property
    def index(self) -> Literal["event", "key", "type"] | None:
        """The index by which the history is searched."""
        return "event" if self.event_ids else self.wanted.index

    @property
    def start(self) -> DeliveryPosition:
        """The position before the first event that can match: no event is delivered before it is recorded."""
        return FIRST if self.wanted.since is None else FIRST._replace(published_at=self.wanted.since)


class DeliveredRow(NamedTuple):
    """A message of the history that the replay copies."""

    published_at: datetime
    id: int
    destination: str
    event_id: str
    size: int
    """Bytes of its payload."""

    @property
    def position(self) -> DeliveryPosition:
        return DeliveryPosition(self.published_at, self.id, self.destination)


class FoundDelivered(NamedTuple):
    """A row that a store scanned for a replay."""

    row: DeliveredRow
    wanted: bool
    edge: bool
    """The last row that was scanned: the rows after it are unknown."""


class ReplayBatch(NamedTuple):
    """A batch of messages to replay, in the order of delivery."""

    rows: list[DeliveredRow]
    after: DeliveryPosition | None
    """Where the next batch continues; None if nothing is left."""


class ReplayCount(NamedTuple):
    """How many of the scanned messages are to be replayed."""

    found: int
    after: Position | None
    """Where the next scan continues; None if nothing is left, or if enough were found."""


class Progress(NamedTuple):
    """A replay and the position it has reached."""

    number: int
    """Its number in the audit."""
    seed: str
    """A UUID from which the ids of its copies are derived."""
    plan: Replay
    began: datetime
    """Events that were delivered later are not part of the replay."""
    copied: int
    after: DeliveryPosition
    done: bool
    expected: int | None = None
    """How many events matched when it began; `COUNTED + 1` stands for that many or more; None: not counted."""

    def copy_id(self, event_id: str) -> str:
        """Return the id of an event's copy: the same for all destinations of the event, different in every replay."""
        return str(uuid5(UUID(self.seed), event_id))


class Replays(Protocol):
    """Copies delivered messages in batches. A batch takes a constant number of statements and returns no payload."""

    async def count(self, plan: Replay, *, enough: int, scan: int, after: Position | None = None) -> ReplayCount:
        """Count the messages to replay, up to `enough`, among the next `scan` rows of an index.

        The scan is in the order of recording, as are the indexes by type and by key: if no row has the type, the key
        or the time, no row is read. The caller applies the rate and the maximum number of the plan.
        """
        ...

    async def chosen(
        self, plan: Replay, *, limit: int, after: DeliveryPosition, began: datetime | None = None
    ) -> ReplayBatch:
        """Return the next messages to replay after a position, of those that were delivered until `began`.

        Scans a bounded number of rows. The batch may therefore be short or empty and still have a position to continue
        from. The caller applies the rate and the maximum number of the plan.
        """
        ...

    async def begin(self, plan: Replay, *, by: str = "", expected: int | None = None) -> Progress:
        """Enter a replay in the audit, and copy nothing yet. expected: how many events match, if counted."""
        ...

    async def find(self, number: int) -> Progress | None:
        """Return a replay by its number in the audit; None if there is none."""
        ...

    async def copy(
        self, progress: Progress, rows: Sequence[DeliveredRow], *, after: DeliveryPosition, done: bool
    ) -> Progress | None:
        """Copy messages, each to the end of its key, and store the new position, in one transaction.

        Returns None and copies nothing if the replay is no longer at the position of `progress`.
        """
        ...


def chosen_of(found: Iterable[FoundDelivered], *, limit: int) -> ReplayBatch:
    """Return the batch that scanned rows make. They have one matching row more than the limit, if there is one."""
    rows: list[DeliveredRow] = []
    size = 0
    for row, wanted, edge in found:
        size += row.size if wanted else 0
        if wanted and rows and (len(rows) == limit or size > BATCH_BYTES):
            return ReplayBatch(rows, rows[-1].position)
        if wanted:
            rows.append(row)
        if edge:
            return ReplayBatch(rows, row.position)
    return ReplayBatch(rows, None)


def detail_of_replay(
    *, seed: str, plan: Replay, after: DeliveryPosition, done: bool, expected: int | None = None
) -> dict[str, Any]:
    """Return the detail of a replay's audit entry."""
    wanted = plan.wanted
    given = {
        "event_type": wanted.event_type,
        "key": wanted.key,
        "destination": wanted.destination,
        "since": timestamp(wanted.since),
        "until": timestamp(plan.until),
        "event_ids": list(plan.event_ids) or None,
        "to": plan.to,
        "rate": plan.rate,
        "most": plan.most,
    }
    asked = {name: value for name, value in given.items() if value is not None}
    counted = {} if expected is None else {"expected": expected}
    return {"replay": seed, "asked": asked, **counted, **progress_detail(after, done=done)}


def progress_detail(after: DeliveryPosition, *, done: bool) -> dict[str, Any]:
    """Return the part of the detail that changes with every batch."""
    return {"after": [timestamp(after.published_at), after.id, after.destination], "done": done}


def replay_of_entry(number: int, began: datetime, copied: int, detail: Mapping[str, Any]) -> Progress:
    """Return the replay of an audit entry."""
    asked = detail["asked"]
    published_at, sequence, destination = detail["after"]
    return Progress(
        number=number,
        seed=detail["replay"],
        plan=Replay(
            wanted=EventFilter(
                event_type=asked.get("event_type"),
                key=asked.get("key"),
                destination=asked.get("destination"),
                since=_time(asked.get("since")),
            ),
            until=_time(asked.get("until")),
            event_ids=tuple(asked.get("event_ids", ())),
            to=asked.get("to"),
            rate=asked.get("rate"),
            most=asked.get("most"),
        ),
        began=began,
        copied=copied,
        after=DeliveryPosition(datetime.fromisoformat(published_at), sequence, destination),
        done=detail["done"],
        expected=detail.get("expected"),
    )


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
