"""How long what is done with is kept."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """In seconds since a row was done with; None keeps it for ever."""

    history: float | None = None
    """Delivered messages."""
    dead: float | None = None
    """Messages that were given up on."""
    receipts: float | None = None
    """What the inbox admitted, and what consumers tallied."""
    ledger: float | None = None
    """What the ledger noted as sent or given up on."""
    audit: float | None = None
    """What people did and asked for."""
    samples: float | None = None
    """Figures over time."""

    @property
    def attempts(self) -> float | None:
        """A failed attempt may explain something as long as history or dead letters are kept."""
        return None if self.history is None or self.dead is None else max(self.history, self.dead)

    def since(self, seconds: float) -> Retention:
        """What it meant so many seconds ago: nothing is too old now that was not then."""
        ages = {field.name: getattr(self, field.name) for field in fields(self)}
        return Retention(**{name: None if age is None else age + seconds for name, age in ages.items()})
