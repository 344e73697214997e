"""The migrations on MariaDB, without a connection."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pillarbox.stores.mariadb.statements import MariaDBStatements
from pillarbox.stores.migrations import Migrations, Preamble

_ROUTINE = re.compile(r"(CREATE (OR REPLACE )?(PROCEDURE|FUNCTION|TRIGGER)|BEGIN NOT ATOMIC)\b")


class MariaDBMigrations(Migrations):
    """See `pillarbox.stores.migrations`. Each statement commits and can be repeated."""

    def __init__(self, statements: MariaDBStatements, *, scripts: Mapping[int, tuple[str, str]] | None = None) -> None:
        """scripts: version → (name, SQL); by default those of the package."""
        super().__init__(
            statements,
            scripts or statements.migrations(),
            statements.downgrades(),
            preamble=Preamble(before=statements.get("schema_create_migrations") + ";"),
            backslashes=True,
        )

    def for_shell(self, script: str) -> str:
        """The shell would end a routine at its first semicolon."""
        for statement in self._split(script):
            if _ROUTINE.match(statement):
                script = script.replace(f"{statement};", f"DELIMITER //\n{statement}//\nDELIMITER ;")
        return script
