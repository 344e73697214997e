"""Whether the tables are as this release wants them."""

from __future__ import annotations

from dataclasses import dataclass

from pillarbox.core.errors import SchemaError


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaStatus:
    """What the database has, and what this release wants."""

    version: int
    """0 = no tables."""
    wanted: int
    pending: tuple[str, ...] = ()
    """Migrations still to run, in order."""
    problems: tuple[str, ...] = ()
    """What is wrong besides, each with its remedy."""

    @property
    def ok(self) -> bool:
        return self.version == self.wanted and not self.problems

    def refuse_newer(self) -> None:
        """Raise SchemaError if the tables come from a later release."""
        if self.version > self.wanted:
            raise SchemaError(
                f"the tables are at version {self.version}, this release knows {self.wanted}: "
                "upgrade Pillarbox here first"
            )

    def demand(self) -> None:
        """Raise SchemaError, saying what to do, unless the tables are as they should be."""
        self.refuse_newer()
        if self.pending:
            raise SchemaError(
                f"the tables are at version {self.version}, this release wants {self.wanted}: "
                "run `pillarbox schema apply`"
            )
        if self.problems:
            raise SchemaError("; ".join(self.problems))
