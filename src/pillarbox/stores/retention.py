"""What each kind of data is deleted by, and how long it is kept: the same statements in every SQL engine."""

from __future__ import annotations

from pillarbox.core.store import Retention
from pillarbox.statements import StatementSet

_KINDS = (
    ("prune_history", "history"),
    ("prune_dead", "dead"),
    ("prune_attempts", "attempts"),
    ("prune_inbox", "inbox"),
    ("prune_consumer_statistics", "inbox"),
    ("prune_ledger", "ledger"),
    ("prune_audit", "audit"),
    ("prune_statistics", "samples"),
)


class RetentionStatements:
    """The statements that delete data past its retention period."""

    def __init__(self, statements: StatementSet, *more: tuple[str, str]) -> None:
        """more: further statements of the engine, each with the field of `Retention` that applies to it."""
        self._kinds = [(statements.get(name), period) for name, period in (*_KINDS, *more)]

    def with_ages(self, kept: Retention) -> list[tuple[str, float]]:
        """The statements of what is not kept forever, each with the age in seconds from which it deletes."""
        ages = [(sql, getattr(kept, period)) for sql, period in self._kinds]
        return [(sql, age) for sql, age in ages if age is not None]
