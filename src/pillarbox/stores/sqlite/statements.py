"""Every statement sent to SQLite, by name, with names of tables and fragments filled in."""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable

from pillarbox.statements import Names, StatementSet, load_statements, text
from pillarbox.stores.admin.engine import shared_statements

PACKAGE = "pillarbox.stores.sqlite"


class SqliteStatements(StatementSet):
    """The statements of one outbox."""

    def __init__(self, names: Names) -> None:
        aliases = {placeholder: names.qualified(name) for placeholder, name in names.aliases.items()}
        super().__init__(names, load_statements(PACKAGE), *shared_statements(), **aliases)

    def script(self, name: str, **values: str) -> str:
        """A named statement that is a script, each of its statements closed with a semicolon."""
        return self.get(name, **values) + ";\n"

    def compatibility_views(self) -> str:
        """The script of `schema apply --aliases`, with its comments."""
        return self.render(text(PACKAGE, "scripts/compatibility_views"))

    def migrations(self, *more: Traversable) -> dict[int, tuple[str, str]]:
        """Version → (name, SQL) of the package's migrations and of those in further folders, in order."""
        return self.read_migrations(files(PACKAGE) / "sql" / "migrations", *more)

    def downgrades(self) -> dict[int, tuple[str, str]]:
        """Version → (name, SQL) of what undoes the package's migrations."""
        return self.read_migrations(files(PACKAGE) / "sql" / "downgrades")
