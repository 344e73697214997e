"""What applications and consumers write on their own connections, one module per dialect of SQL.

A module defines `DIALECT`; its statements are in `sql/record_<module>.sql` and `sql/inbox_<module>.sql`. To support
another engine, add these three files, and to `pillarbox.connections.drivers` a module for each of its drivers, which
names the dialect.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from pillarbox.dialects.dialect import Appender, AppendOptions, Dialect, FailedWrite, WriteFailure

__all__ = ["AppendOptions", "Appender", "Dialect", "FailedWrite", "WriteFailure", "find", "known", "refuses_value"]


@cache
def find(name: str) -> Dialect:
    """The dialect of that name."""
    dialect: Dialect = import_module(f"{__name__}.{name}").DIALECT
    return dialect


def known() -> Iterator[str]:
    """The names of all dialects."""
    return (module.name for module in iter_modules(__path__) if module.name != "dialect")


def refuses_value(error: Exception) -> bool:
    """Whether a database refuses the values of a write, whichever database it is."""
    return any(find(name).refuses_value(error) for name in known())
