"""Every statement sent to PostgreSQL, by name, with names of tables and fragments filled in."""

from __future__ import annotations

import re
from functools import lru_cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from pillarbox.core.lane import LANES
from pillarbox.statements import Names, StatementSet, load_statements, text
from pillarbox.stores.admin.engine import shared_statements

PACKAGE = "pillarbox.stores.postgres"
# `:name`, and not the `::type` of a cast.
_PARAMETER = re.compile(r"(?<!:):([a-z_]+)\b")

_OWN_NAMES = (
    "uuid7",
    "json",
    "retry",
    "record",
    "history_create",
    "history_drop",
    "history_default",
    "message_id_seq",
    "alias_new",
    "alias_update",
    "alias_delete",
    "events_insert",
    "outbox_insert",
    "integration_insert",
    "dlq_insert",
    "dlq_delete",
    "payload_limit",
    "clamp_time",
)


class PostgresStatements(StatementSet):
    """The statements of one outbox."""

    def __init__(self, names: Names) -> None:
        own = {name: names.qualified(names.prefix + name) for name in _OWN_NAMES}
        own |= {placeholder: names.qualified(name) for placeholder, name in names.aliases.items()}
        super().__init__(names, load_statements(PACKAGE), *shared_statements(), **own, lane_mask=str(LANES - 1))

    def migrations(self, *more: Traversable) -> dict[int, tuple[str, str]]:
        """Version → (name, SQL) of the package's migrations and of those in further folders, in order."""
        return self.read_migrations(files(PACKAGE) / "sql" / "migrations", *more)

    def downgrades(self) -> dict[int, tuple[str, str]]:
        """Version → (name, SQL) of what undoes the package's migrations."""
        return self.read_migrations(files(PACKAGE) / "sql" / "downgrades")

    def script(self, name: str, **values: str) -> str:
        """A script of several statements, with its comments."""
        return self.render(text(PACKAGE, f"scripts/{name}"), **values)

    def shown(self, name: str, /, *variants: str) -> str:
        sql, _ = numbered(super().shown(name, *variants))
        return sql


@lru_cache(maxsize=256)
def numbered(statement: str) -> tuple[str, tuple[str, ...]]:
    """The statement with `$1` for its first parameter, and the names of its parameters in that order."""
    names = tuple(dict.fromkeys(_PARAMETER.findall(statement)))
    return _PARAMETER.sub(lambda found: f"${names.index(found[1]) + 1}", statement), names
