"""Diagnosis: the checks of a store or a transport, and their results.

A check changes nothing, reads a bounded number of rows and returns within a bounded time. If a check raises, the caller
reports that as a finding and runs the other checks.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from pillarbox.core.errors import SchemaError

if TYPE_CHECKING:
    from pillarbox.core.store import Schema, SchemaStatus

Result = Literal["pass", "warn", "fail", "skip"]
"""`skip`: not run, because a check that it depends on failed."""

LONG_TRANSACTION = 300.0
"""Seconds after which an open transaction is reported: vacuum cannot remove rows that it can still see."""
EXAMINED = 10_000
"""Pending messages that a check reads, the first recorded ones."""
MANY_ATTEMPTS = 5
_LONGEST = 120


class CheckResult(NamedTuple):
    """The result of a check, and what to do about it."""

    result: Result
    message: str
    fix: str = ""


def passed(message: str) -> CheckResult:
    """Return the result of a check that found no problem; the message says what it found."""
    return CheckResult("pass", message)


def warned(message: str, fix: str) -> CheckResult:
    """Return a warning: delivery works, but the operator should apply the fix."""
    return CheckResult("warn", message, fix)


def failed(message: str, fix: str) -> CheckResult:
    """Return a failure: delivery does not work, or not as configured, until the operator applies the fix."""
    return CheckResult("fail", message, fix)


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One check."""

    name: str
    """`group.subject`, as the reference lists it."""
    ask: Callable[[], Awaitable[CheckResult]]
    prerequisite: bool = False
    """If it fails, later checks of its group are skipped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The outcome of a check in a report."""

    check: str
    result: Result
    message: str
    fix: str = ""
    subject: str = ""
    """The transport, if there are several; else ''."""


class RetriedSummary(NamedTuple):
    """Pending messages with many attempts, among the first `EXAMINED` pending ones."""

    messages: int
    error: str
    """The commonest of their last errors; '' if there is none."""
    example: str
    """The id of an event with that error."""


class TableSize(NamedTuple):
    """The size of a table with its indexes, or of another file; None is unknown."""

    name: str
    rows: int | None
    dead_rows: int | None
    """Deleted or updated rows that vacuum has not removed yet."""
    bytes: int
    partition_of: str = ""
    """The table that it is a partition of; '' if it is not a partition."""


class OpenTransaction(NamedTuple):
    """An open transaction that keeps vacuum from removing dead rows."""

    pid: int
    user: str
    application: str
    state: str
    seconds: float
    query: str
    """Shortened, and without its values."""


class TableSizes(NamedTuple):
    """The largest part first."""

    parts: Sequence[TableSize]
    oldest: OpenTransaction | None = None
    """None: there is none, or this user cannot see it."""

    @property
    def bytes(self) -> int:
        return sum(part.bytes for part in self.parts)


class Diagnosis(Protocol):
    """Checks of a store, and the sizes of its tables."""

    def checks(self, *, long_transaction: float = LONG_TRANSACTION) -> Sequence[Check]:
        """Return the checks, causes before symptoms. long_transaction: age in seconds to report."""
        ...

    async def retried(self, more_than: int = MANY_ATTEMPTS) -> RetriedSummary:
        """Return the pending messages with more failed sends than that."""
        ...

    async def table_sizes(self) -> TableSizes:
        """Return the sizes of the tables and the oldest open transaction."""
        ...


def schema_checks(schema: Schema) -> list[Check]:
    """Return the checks of version and tables. If the version is wrong, the other checks of the store are skipped."""

    async def version() -> CheckResult:
        return _version(await schema.status())

    async def tables() -> CheckResult:
        if problems := (await schema.status()).problems:
            return failed("; ".join(problems), "follow the advice for each problem")
        return passed("the tables are unchanged")

    return [Check(name="store.schema", ask=version, prerequisite=True), Check(name="store.tables", ask=tables)]


def _version(status: SchemaStatus) -> CheckResult:
    if status.version == 0:
        return failed("there are no tables", f"`{SchemaError.command}`")
    if status.too_new:
        return failed(
            f"the tables are at version {status.version}, this release supports {status.required}",
            "upgrade Pillarbox first",
        )
    if status.pending:
        return failed(
            f"the tables are at version {status.version}, this release needs {status.required}",
            f"`{SchemaError.command}`",
        )
    if status.version > status.required:
        return passed(
            f"the tables are at version {status.version}: this release needs {status.required}, the later changes are "
            "additive"
        )
    return passed(f"the tables are at version {status.version}, as this release needs them")


def commonest(errors: Iterable[tuple[str, str]]) -> RetriedSummary:
    """Return how many (error, event id) pairs there are, and the commonest error."""
    found = [(reason(error, event_id), event_id) for error, event_id in errors]
    if not found:
        return RetriedSummary(0, "", "")
    [(commonest_error, _)] = Counter(error for error, _ in found).most_common(1)
    return RetriedSummary(
        len(found), commonest_error, next(event_id for error, event_id in found if error == commonest_error)
    )


def reason(error: str, event_id: str = "") -> str:
    """Return an error without the id of its event, so that errors of different events compare equal."""
    return shortened(re.sub(rf"(?<!\w){re.escape(event_id)}(?!\w)", "…", error) if event_id else error)


def shortened(text: str, *, most: int = _LONGEST) -> str:
    """Return the text on one line, with at most `most` characters."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"
