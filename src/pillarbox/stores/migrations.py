"""The migrations of one engine: for `schema apply`, for the shell of the database, and for other migration tools.

A migration is additive if releases before it can use the tables after it. It says so in its first line, `(additive)`,
and is registered with a negative number: a release compares its own version with the largest number in the table, so
it accepts tables that are ahead by additive migrations only.

Neither connection nor driver is needed here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pillarbox.core.errors import ConfigurationError
from pillarbox.core.store import MigrationScript, SchemaStatus
from pillarbox.statements import StatementSet
from pillarbox.stores.splitting import split_statements

ADDITIVE = "(additive)"
"""In the first line of a migration: releases before it can use the tables after it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preamble:
    """What an engine runs around the first migration, beside the file."""

    before: str = ""
    after: str = ""


class Migrations:
    """The migrations of a release, in order, and what undoes them."""

    def __init__(
        self,
        statements: StatementSet,
        scripts: Mapping[int, tuple[str, str]],
        downgrades: Mapping[int, tuple[str, str]],
        *,
        preamble: Preamble,
        backslashes: bool = False,
    ) -> None:
        """
        scripts: version → (name, SQL).
        downgrades: version → (name, the SQL that undoes it).
        backslashes: whether a backslash escapes in every string.
        """
        self._statements = statements
        self._scripts = scripts
        self._downgrades = downgrades
        self._preamble = preamble
        self._backslashes = backslashes

    @property
    def newest(self) -> int:
        return max(self._scripts)

    @property
    def version_query(self) -> str:
        """Reads the newest version, and the newest that was not additive, from the table of versions."""
        return self._statements.get("schema_version")

    def names_after(self, version: int) -> tuple[str, ...]:
        """The names of the migrations after a version."""
        return tuple(name for number, (name, _) in self._scripts.items() if number > version)

    def first_line(self, version: int) -> str:
        """The line that says what a migration is for and how it runs."""
        return self._scripts[version][1].split("\n", 1)[0]

    def status(self, version: int, breaking: int, *, problems: Iterable[str] = ()) -> SchemaStatus:
        """What this release says of tables at that version."""
        return SchemaStatus(
            version=version,
            required=self.newest,
            breaking=breaking,
            pending=self.names_after(version),
            problems=tuple(problems),
        )

    def shell_script(self, *, since: int = 0) -> str:
        """The migrations after a version as one script, with their comments."""
        self._check(since)
        parts: list[str] = []
        for number, (name, script) in self._scripts.items():
            if number > since:
                parts += [self.for_shell(script).rstrip(), self._register(number, name) + ";"]
        if since == 0:
            parts = [self._preamble.before.rstrip(), *parts, self._preamble.after.rstrip()]
        return "\n\n".join(part for part in parts if part) + "\n"

    def scripts(self, *, since: int = 0) -> list[MigrationScript]:
        """See `pillarbox.core.store.Schema`."""
        self._check(since)
        return self.after(since)

    def after(self, version: int) -> list[MigrationScript]:
        """What `apply` runs on tables at a version, which may be later than those of this release."""
        return [
            MigrationScript(version=number, name=name, statements=self._statements_of(number, name, script))
            for number, (name, script) in self._scripts.items()
            if number > version
        ]

    def downgrades(self, *, to: int, since: int | None = None, discard_pending: bool = False) -> list[MigrationScript]:
        """See `pillarbox.core.store.Schema`."""
        since = self.newest if since is None else since
        self._check(to, since)
        undone: list[MigrationScript] = []
        for number in range(since, to, -1):
            if number not in self._downgrades:
                raise ConfigurationError(f"migration {number} cannot be undone: restore a backup from before it")
            name, script = self._downgrades[number]
            undone.append(
                MigrationScript(version=number, name=name, statements=self._undo(number, script, discard_pending))
            )
        return undone

    def _check(self, *versions: int) -> None:
        for version in versions:
            if version != 0 and version not in self._scripts:
                raise ConfigurationError(
                    f"there is no schema version {version}: this release has 0 (no tables) to {self.newest}"
                )

    def _statements_of(self, number: int, name: str, script: str) -> tuple[str, ...]:
        statements = [*self._split(script), self._register(number, name)]
        if number == min(self._scripts):
            statements = [*self._split(self._preamble.before), *statements, *self._split(self._preamble.after)]
        return tuple(statements)

    def _undo(self, number: int, script: str, discard_pending: bool) -> tuple[str, ...]:
        statements = list(self._split(script))
        if number > min(self._scripts):
            # The first migration takes the table of versions with it.
            return (*statements, self._statements.get("schema_unregister", version=str(number)))
        guard = "" if discard_pending else self._statements.get("schema_refuse_pending")
        return (*self._split(guard), *statements)

    def _register(self, number: int, name: str) -> str:
        registered = -number if ADDITIVE in self.first_line(number) else number
        return self._statements.get("schema_register", version=str(registered), migration=name)

    def for_shell(self, script: str) -> str:
        """A script that ends with a semicolon, as the shell of the database reads it."""
        return script

    def _split(self, script: str) -> Iterable[str]:
        return split_statements(script, backslashes=self._backslashes)
