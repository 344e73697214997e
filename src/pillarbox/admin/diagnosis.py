"""What a store or a transport can be asked about its own health: checks, and what each of them finds.

A check looks and changes nothing, reads a bounded number of rows and answers within a bounded time. Whoever runs it
turns what it raises into a finding, so that one that cannot be made never keeps the others from being made.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

if TYPE_CHECKING:
    from pillarbox.core.store import Schema, SchemaStatus

Result = Literal["pass", "warn", "fail", "skip"]
"""`skip`: not made, because one before it failed on which it depends."""

LONG_TRANSACTION = 300.0
"""Seconds after which an open transaction is worth a word: vacuum cannot take away what it could still see."""
LOOKED_AT = 10_000
"""Waiting messages that are looked at, those that were recorded first."""
MANY_TRIES = 5
_LONGEST = 120


class Answer(NamedTuple):
    """What a check found, and what to do about it."""

    result: Result
    said: str
    fix: str = ""


def passed(said: str) -> Answer:
    return Answer("pass", said)


def warned(said: str, fix: str) -> Answer:
    return Answer("warn", said, fix)


def failed(said: str, fix: str) -> Answer:
    return Answer("fail", said, fix)


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One question."""

    name: str
    """`group.subject`, as the reference lists it."""
    ask: Callable[[], Awaitable[Answer]]
    gate: bool = False
    """If it fails, those after it in its group cannot be asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What became of a check."""

    check: str
    result: Result
    said: str
    fix: str = ""
    subject: str = ""
    """Which of several transports; '' where there is only one thing it can be about."""


class Tried(NamedTuple):
    """Messages that wait although they were tried often, among the first `LOOKED_AT` that wait."""

    messages: int
    error: str
    """The commonest of their last errors; '' if there is none."""
    example: str
    """The id of an event with that error."""


class Part(NamedTuple):
    """A table with its indexes, or whatever else takes room; None is what nobody knows."""

    name: str
    rows: int | None
    dead_rows: int | None
    """Gone, and not cleared away yet."""
    bytes: int
    whole: str = ""
    """The table of which it is a partition; '' if it is none."""


class OpenTransaction(NamedTuple):
    """A transaction of which dead rows must wait for the end."""

    pid: int
    who: str
    application: str
    state: str
    seconds: float
    query: str
    """Short, and without what is written into it."""


class TableSizes(NamedTuple):
    """The largest part first."""

    parts: Sequence[Part]
    oldest: OpenTransaction | None = None
    """None: there is none, or it cannot be seen."""

    @property
    def bytes(self) -> int:
        return sum(part.bytes for part in self.parts)


class Diagnosis(Protocol):
    """What a store can say of itself."""

    def checks(self, *, long_transaction: float = LONG_TRANSACTION) -> Sequence[Check]:
        """In the order in which they explain each other; transactions are long after so many seconds."""
        ...

    async def tried(self, more_than: int = MANY_TRIES) -> Tried:
        """Messages that were sent in vain more often than that and still wait."""
        ...

    async def table_sizes(self) -> TableSizes:
        """How much room it takes, and whose transaction is the oldest."""
        ...


def schema_checks(schema: Schema) -> list[Check]:
    """Whether the tables are as this release wants them; without those of its version, nothing else can be asked."""

    async def version() -> Answer:
        return _version(await schema.status())

    async def tables() -> Answer:
        if problems := (await schema.status()).problems:
            return failed("; ".join(problems), "each is told with its remedy")
        return passed("nobody has changed the tables")

    return [Check(name="store.schema", ask=version, gate=True), Check(name="store.tables", ask=tables)]


def _version(status: SchemaStatus) -> Answer:
    if status.version == 0:
        return failed("there are no tables", "`pillarbox schema apply`")
    if status.version > status.wanted:
        return failed(
            f"the tables are at version {status.version}, this release knows {status.wanted}",
            "upgrade Pillarbox here first",
        )
    if status.pending:
        return failed(
            f"the tables are at version {status.version}, this release wants {status.wanted}",
            "`pillarbox schema apply`",
        )
    return passed(f"the tables are at version {status.version}, as this release wants them")


def commonest(errors: Iterable[tuple[str, str]]) -> Tried:
    """Of (error, event id) pairs, how many there are, and the error that most of them share."""
    found = [(reason(error, event_id), event_id) for error, event_id in errors]
    if not found:
        return Tried(0, "", "")
    [(commonest_error, _)] = Counter(error for error, _ in found).most_common(1)
    return Tried(len(found), commonest_error, next(event_id for error, event_id in found if error == commonest_error))


def reason(error: str, event_id: str = "") -> str:
    """An error for people to compare: one that names its event is the same error for the next event."""
    return shortened(re.sub(rf"(?<!\w){re.escape(event_id)}(?!\w)", "…", error) if event_id else error)


def shortened(text: str, *, most: int = _LONGEST) -> str:
    """The text on one line, and no longer than that."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"
