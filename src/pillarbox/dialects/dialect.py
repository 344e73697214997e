"""The protocol of a dialect: how events are appended and inbox records are written, and what a failure means."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from enum import Enum
from typing import ClassVar, NamedTuple, Protocol

from pillarbox.connections import Steps
from pillarbox.core.rows import EventRow
from pillarbox.statements import Names, StatementSet, load_statements
from pillarbox.table_names import TableNames


class AppendOptions(NamedTuple):
    """The settings of an outbox that its statements depend on."""

    ignore_duplicates: bool = False
    """Skip events that are already pending."""
    notify: bool = True
    """Wake up an idle relay at commit, where the engine can."""
    strict_order: bool = False
    """Make writers of one key wait for each other until they commit, where the engine has several writers."""


class Appender(Protocol):
    """The statements with which one outbox appends events."""

    def steps(self, rows: Sequence[EventRow]) -> Steps[None]:
        """Append the rows in their order."""
        ...


class WriteFailure(Enum):
    """Why a write failed, as far as the outbox and the inbox are concerned."""

    TABLES_MISSING = "a schema, a table or a column does not exist"
    DUPLICATE = "a row with the same key exists"
    FORBIDDEN = "the role lacks a privilege"
    REJECTED = "the table rejects the values"
    ABORTED = "the transaction has already failed"


class FailedWrite(NamedTuple):
    """A failed write, classified."""

    failure: WriteFailure
    detail: str = ""
    """Of a duplicate: text that contains `=(event id, destination) `, if the database names the row."""


class Dialect(ABC):
    """Writes on the connections of applications and consumers."""

    name: ClassVar[str]
    """The name of its module. `sql/record_<name>.sql` has the statements of its appender, `sql/inbox_<name>.sql` has
    `admit` and `count_results`."""
    after_duplicate: ClassVar[str] = ""
    """What the caller must do before the transaction can go on after a duplicate, as the end of a sentence."""

    @abstractmethod
    def names(self, tables: TableNames) -> Names:
        """The names of the tables as this engine writes them."""

    @abstractmethod
    def appender(self, statements: StatementSet, options: AppendOptions) -> Appender:
        """The statements of an outbox."""

    @abstractmethod
    def explain(self, error: Exception) -> FailedWrite | None:
        """Classify a driver's exception; None: it does not concern the outbox or the inbox."""

    @abstractmethod
    def refuses_value(self, error: Exception) -> bool:
        """Whether the database refuses the values of a write: it refuses them again, however often it is retried."""

    def inbox_values(self, row: tuple[object, ...]) -> tuple[object, ...]:
        """The parameters of `admit` and `count_results` for an inbox record and for statistics."""
        return row

    def grant(self, names: Names, table: str, privileges: str) -> str:
        """What an administrator does so that the role may write to a table, as part of a sentence."""
        return f"GRANT {privileges} ON {names.qualified(names.prefix + table)} to it"

    def statements(self, names: Names) -> StatementSet:
        """The statements of this dialect for one outbox."""
        return StatementSet(names, load_statements("pillarbox.dialects", f"record_{self.name}", f"inbox_{self.name}"))
