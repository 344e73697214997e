"""Where the tables are: one value for the store, the outbox and the inbox."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pillarbox.settings import Identifier, check_settings, documented, setting
from pillarbox.statements import DEFAULT_PREFIX, Names


@documented
@dataclass(frozen=True, slots=True, kw_only=True)
class TableNames:
    """Where the tables are. Create one, and pass it to `open_store`, `Outbox` and `Inbox`.

    Raises ConfigurationError for a name that is not a plain identifier or is too long.
    """

    prefix: str = setting(
        DEFAULT_PREFIX,
        Identifier("prefix"),
        "What the names of the tables begin with.",
        formerly={"table_name": "tables are named by their prefix; `schema apply --aliases` adds the usual names"},
    )
    schema: str = setting("public", Identifier("schema"), "The PostgreSQL schema of the tables.")

    def __post_init__(self) -> None:
        check_settings(self)

    @property
    def postgres(self) -> Names:
        """The names as PostgreSQL needs them."""
        return Names(prefix=self.prefix, schema=self.schema)

    @property
    def sqlite(self) -> Names:
        """The names as SQLite needs them: SQLite has no schemas."""
        return Names(prefix=self.prefix)


DEFAULT_TABLES: Final = TableNames()
