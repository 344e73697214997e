"""Every statement sent to SQLite, by the name of its file, with names and shared fragments filled in."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from importlib.resources import files

from pillarbox.core import sqlfiles
from pillarbox.core.names import Names

PACKAGE = "pillarbox.stores.sqlite"

_FRAGMENTS = (
    "now",
    "lease_runs",
    "outage",
    "size",
    "not_in_hand",
    "rows",
    "holds_back",
    "settled",
    "delivered_at_once",
    "behind",
    "blocker",
    "uuid7",
    "alias_retry",
)


class Statements:
    """The statements of one outbox."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self._ready: dict[str, str] = {}
        self._fragments = {
            **{placeholder: names.qualified(name) for placeholder, name in names.aliases.items()},
            "outside": "",
            "in_range": "",
        }
        for fragment in _FRAGMENTS:
            self._fragments[fragment] = self.get(fragment)

    def get(self, name: str) -> str:
        """The statement of `sql/<name>.sql`."""
        if name not in self._ready:
            self._ready[name] = sqlfiles.statement(PACKAGE, name, self.names, **self._fragments)
        return self._ready[name]

    def narrowed(self, name: str, **fragments: str | None) -> str:
        """A statement with other files put into its places; None leaves a place empty."""
        filled = {place: "" if file is None else self.get(file) for place, file in fragments.items()}
        return sqlfiles.statement(PACKAGE, name, self.names, **(self._fragments | filled))

    def at_once(self, read: str) -> str:
        """A read and the fetch of what it picks as one statement."""
        fetch = sqlfiles.statement(PACKAGE, "fetch", self.names, **(self._fragments | {"rows": "picked"}))
        arrivals = self.get("arrivals")
        return sqlfiles.statement(PACKAGE, "read_at_once", self.names, read=read, fetch=fetch, arrivals=arrivals)

    def ranged(self, name: str, *, row: str) -> str:
        """A read that takes a range of times as well; `row` is what it calls a row that it picks."""
        fragments = {
            fragment: sqlfiles.statement(PACKAGE, fragment, self.names, row=row) for fragment in ("outside", "in_range")
        }
        return sqlfiles.statement(PACKAGE, name, self.names, **(self._fragments | fragments))

    def script(self, name: str, **more: str) -> str:
        """A script of several statements, with its comments."""
        return self.names.render(sqlfiles.text(PACKAGE, name), **(self._fragments | more)).rstrip() + "\n"

    def migrations(self) -> dict[int, tuple[str, str]]:
        """Version → (name, script), in order."""
        folder = files(PACKAGE) / "sql" / "migrations"
        found = sorted(entry.name.removesuffix(".sql") for entry in folder.iterdir() if entry.name.endswith(".sql"))
        return {int(name[:4]): (name, self.script(f"migrations/{name}")) for name in found}


def each(script: str) -> Iterator[str]:
    """The statements of a script; `executescript` would commit whatever transaction is open."""
    lines: list[str] = []
    for line in script.splitlines():
        lines.append(line)
        if sqlite3.complete_statement(statement := "\n".join(lines)):
            yield statement
            lines = []
