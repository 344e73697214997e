"""Where the tables are: one value for the store, the outbox and the inbox."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from pillarbox.settings import Identifier, check_settings, documented, setting
from pillarbox.statements import DEFAULT_PREFIX, TABLES, Names

_OWN_TABLES: Final = {*TABLES, "key_lock"}
_HISTORY_PARTITION: Final = re.compile(r"history_(?:default|[0-9]{8})")


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

    def owns(self, name: str) -> bool:
        """Whether a table or view of the database belongs to this outbox, also one of `schema apply --aliases`."""
        names = Names(prefix=self.prefix)
        if name in names.aliases.values():
            return True
        own = name.removeprefix(self.prefix)
        return own != name and (own in _OWN_TABLES or _HISTORY_PARTITION.fullmatch(own) is not None)


DEFAULT_TABLES: Final = TableNames()
