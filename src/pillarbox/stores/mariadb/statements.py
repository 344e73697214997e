"""Every statement sent to MariaDB, by name, with names of tables and fragments filled in.

Statements take their parameters by name, as in `:limit`. The driver writes the values into the text, so a list can be
one, in three forms: `:ids` is the list as JSON, for JSON_TABLE; `:ids_in` is `(1, 2, 3)`, for IN; and
`:ids_and_destinations` are the rows of two lists as JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, cast

from pillarbox.core.lane import LANES
from pillarbox.statements import Names, StatementSet, load_statements
from pillarbox.stores.admin.engine import shared_statements
from pillarbox.stores.mariadb.timestamps import encode_time

PACKAGE = "pillarbox.stores.mariadb"
_PARAMETER = re.compile(r"(?<![:\w'\[]):([a-z_]+)\b")
_LONG = 4096
_LIST = "_in"
_TOGETHER = "_and_"


class MariaDBStatements(StatementSet):
    """The statements of one outbox."""

    def __init__(self, names: Names) -> None:
        super().__init__(
            names,
            load_statements(PACKAGE),
            *shared_statements(),
            lane_mask=str(LANES - 1),
            record=names.qualified(f"{names.prefix}record"),
        )

    def migrations(self, *more: Traversable) -> dict[int, tuple[str, str]]:
        """Version → (name, SQL) of the package's migrations and of those in further folders, in order."""
        return self.read_migrations(files(PACKAGE) / "sql" / "migrations", *more)

    def downgrades(self) -> dict[int, tuple[str, str]]:
        """Version → (name, SQL) of what undoes the package's migrations."""
        return self.read_migrations(files(PACKAGE) / "sql" / "downgrades")


class PreparedText(str):
    """A statement whose parameters are marked as the driver takes them; it may use those that are given."""

    __slots__ = ()


def prepared(statement: str) -> str:
    """A statement, or a part of one, with its parameters marked as the driver takes them."""
    return _named(statement)[0]


def bound(statement: str, given: Mapping[str, object]) -> tuple[str, dict[str, object]]:
    """The statement and its parameters as the driver takes them."""
    if isinstance(statement, PreparedText):
        return statement, {name: _encoded(name, given) for name in given}
    # A long one contains the numbers of its messages, and never comes again.
    sql, names = _named(statement) if len(statement) < _LONG else _named.__wrapped__(statement)
    return sql, {name: _encoded(name, given) for name in names}


@lru_cache(maxsize=256)
def _named(statement: str) -> tuple[str, tuple[str, ...]]:
    names = tuple(dict.fromkeys(_PARAMETER.findall(statement)))
    return _PARAMETER.sub(r"%(\1)s", statement.replace("%", "%%")), names


def _encoded(name: str, given: Mapping[str, object]) -> object:
    if name in given:
        value = given[name]
        if isinstance(value, list):
            return json.dumps(value, ensure_ascii=False, default=_text)
        return encode_time(value) if isinstance(value, datetime) else value
    if _TOGETHER in name:
        columns: list[Any] = [given.get(column) for column in name.split(_TOGETHER)]
        rows = [[column[n] if column else None for column in columns] for n in range(len(columns[0]))]
        return json.dumps(rows, ensure_ascii=False, default=_text)
    values: Any = given[name.removesuffix(_LIST)]
    # Nothing is in a list of NULL.
    return tuple(cast("list[object]", values) or (None,)) if values is not None else (None,)


def _text(value: datetime) -> str:
    """What JSON has no form for: times."""
    return encode_time(value)
