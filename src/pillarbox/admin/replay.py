"""Replay: what was delivered goes out once more, as new events that say of which they are copies.

A copy has an id of its own, so that consumers take it as new, and the original's in the header `replayof`. Copies keep
the order in which the originals were delivered, which is the order of each key. How far a replay got is written with
every bite of copies, in the same transaction and into its entry of the audit: whoever goes on after a crash does
nothing twice and leaves nothing out. Copies are no originals: what is itself a copy is replayed only by its id.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple, Protocol
from uuid import UUID, uuid5

from pillarbox.admin.listing import EventFilter, Position
from pillarbox.core.clock import timestamp
from pillarbox.core.errors import ConfigurationError, RecordError
from pillarbox.core.event import LONGEST_TEXT, check_text
from pillarbox.core.message import Status

WHAT = "replay"
"""What the audit calls it."""

LOOK = 20_000
"""Rows of the history that one statement looks at."""

BITE_BYTES = 8 * 1024 * 1024
"""Payloads that one statement copies, unless a single one is larger."""

MOST_IDS = 1_000


class Place(NamedTuple):
    """Where a delivered message stands in the order of delivery."""

    published_at: datetime
    id: int
    destination: str


FIRST = Place(datetime.min.replace(tzinfo=UTC), 0, "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """What is to be replayed, where to, and how fast. Raises ConfigurationError for what contradicts itself."""

    wanted: EventFilter = field(default_factory=EventFilter)
    """By type, key, destination and when it was recorded."""
    until: datetime | None = None
    """Recorded before then."""
    event_ids: tuple[str, ...] = ()
    """Only these events, if any are named."""
    to: str | None = None
    """The one destination they all go to, each event once; None: where each went."""
    rate: float | None = None
    """Copies per second at most."""
    most: int | None = None
    """The oldest so many."""

    def __post_init__(self) -> None:
        wanted = self.wanted
        if wanted.status not in (None, Status.PUBLISHED) or wanted.retrying or wanted.blocked:
            raise ConfigurationError("only what was delivered can be replayed: what was given up on is retried")
        if wanted.aggregate is not None or wanted.error is not None or wanted.until is not None:
            raise ConfigurationError("a replay is chosen by type, key, destination and time, or by ids")
        if wanted.since is not None and self.until is not None and wanted.since >= self.until:
            raise ConfigurationError(f"nothing is recorded since {wanted.since} and before {self.until}: swap them")
        if self.rate is not None and not (self.rate > 0 and math.isfinite(self.rate)):
            raise ConfigurationError(f"a rate of {self.rate} a second replays nothing: give one above zero")
        if self.most is not None and self.most < 1:
            raise ConfigurationError(f"{self.most} events are nothing to replay: give a number from 1 on")
        if len(self.event_ids) > MOST_IDS:
            raise ConfigurationError(f"{len(self.event_ids)} ids are too many for one replay: name at most {MOST_IDS}")
        if self.to is not None:
            try:
                check_text("destination", self.to, LONGEST_TEXT)
            except RecordError as error:
                raise ConfigurationError(str(error)) from None

    @property
    def index(self) -> Literal["event", "key", "type"] | None:
        """By what the history is looked up."""
        return "event" if self.event_ids else self.wanted.index

    @property
    def start(self) -> Place:
        """Before the first that could be wanted: nothing is delivered before it is recorded."""
        return FIRST if self.wanted.since is None else FIRST._replace(published_at=self.wanted.since)


class Delivered(NamedTuple):
    """A message of the history that is to be copied."""

    published_at: datetime
    id: int
    destination: str
    event_id: str
    size: int
    """Bytes of its payload."""

    @property
    def place(self) -> Place:
        return Place(self.published_at, self.id, self.destination)


class FoundDelivered(NamedTuple):
    """A row that a store looked at."""

    row: Delivered
    wanted: bool
    edge: bool
    """The last row that was looked at: what comes after it is not known."""


class Chosen(NamedTuple):
    """Some of what is to be replayed, in the order of delivery."""

    rows: list[Delivered]
    after: Place | None
    """Where to go on; None if nothing is left."""


class Counted(NamedTuple):
    """How many of what one look went over are to be replayed."""

    found: int
    after: Position | None
    """Where the next look goes on; None if nothing is left, or enough was found."""


class Progress(NamedTuple):
    """A replay, and how far it got."""

    number: int
    """Its number in the audit."""
    seed: str
    """A UUID that the ids of its copies are made of."""
    plan: Replay
    began: datetime
    """What was delivered later is no part of it."""
    copied: int
    after: Place
    done: bool
    expected: int | None = None
    """How many it was to be when it began; `COUNTED + 1` stands for that many or more, None for what nobody counted."""

    def copy_id(self, event_id: str) -> str:
        """The id of an event's copy: the same for all destinations of the event, another in every replay."""
        return str(uuid5(UUID(self.seed), event_id))


class Replays(Protocol):
    """Copies of what was delivered, in bites: a constant number of statements each, and no payload comes by here."""

    async def count(self, plan: Replay, *, enough: int, look: int, after: Position | None = None) -> Counted:
        """How many are to be replayed, up to `enough`, among the next `look` rows that an index brings.

        By the time of recording, which the indexes by type and by key have as well: where nothing fits one of these,
        or a range of times, nothing is read. The rate and the number of the plan are the caller's business.
        """
        ...

    async def chosen(self, plan: Replay, *, limit: int, after: Place, began: datetime | None = None) -> Chosen:
        """The next that are to be replayed, behind `after`, of those that were delivered until `began`.

        Looks at a bounded number of rows, so it may be short, or empty, and still say where to go on. The rate and
        the number of the plan are the caller's business.
        """
        ...

    async def begin(self, plan: Replay, *, by: str = "", expected: int | None = None) -> Progress:
        """Enter a replay in the audit; nothing is copied yet. expected: how many it will be, where that is known."""
        ...

    async def find(self, number: int) -> Progress | None:
        """A replay by its number in the audit."""
        ...

    async def copy(self, progress: Progress, rows: Sequence[Delivered], *, after: Place, done: bool) -> Progress | None:
        """Copy these, each to the end of its key, and write how far that is: both or neither.

        None, and nothing copied, if the replay is no longer where `progress` says.
        """
        ...


def chosen_of(found: Iterable[FoundDelivered], *, limit: int) -> Chosen:
    """What rows in the order of delivery make; there is one wanted row more than the limit, if there could be."""
    rows: list[Delivered] = []
    size = 0
    for row, wanted, edge in found:
        size += row.size if wanted else 0
        if wanted and rows and (len(rows) == limit or size > BITE_BYTES):
            return Chosen(rows, rows[-1].place)
        if wanted:
            rows.append(row)
        if edge:
            return Chosen(rows, row.place)
    return Chosen(rows, None)


def written(*, seed: str, plan: Replay, after: Place, done: bool, expected: int | None = None) -> dict[str, Any]:
    """A replay as the audit has it, but for its number, its time and its count."""
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
    return {"replay": seed, "asked": asked, **counted, **position(after, done=done)}


def position(after: Place, *, done: bool) -> dict[str, Any]:
    """The part of it that changes with every bite."""
    return {"after": [timestamp(after.published_at), after.id, after.destination], "done": done}


def read(number: int, began: datetime, copied: int, detail: Mapping[str, Any]) -> Progress:
    """What `written` wrote."""
    asked = detail["asked"]
    published_at, place, destination = detail["after"]
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
        after=Place(datetime.fromisoformat(published_at), place, destination),
        done=detail["done"],
        expected=detail.get("expected"),
    )


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
