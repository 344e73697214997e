"""The shipped PostgreSQL, with databases that are cloned in milliseconds."""

from typing import Literal

import psycopg
from psycopg import sql

from pillarbox.testing.servers import postgres


class PostgresServer(postgres.PostgresServer):
    """One cluster, see there. Creates and drops databases over one connection that it keeps."""

    _administrator: psycopg.Connection | None = None

    def stop(self, mode: Literal["fast", "immediate"] = "fast") -> None:
        super().stop(mode)
        self._dismiss_administrator()

    def kill(self) -> None:
        super().kill()
        self._dismiss_administrator()

    def create_database(self, name: str, template: str | None = None) -> None:
        self._execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY FILE_COPY").format(
                sql.Identifier(name), sql.Identifier(template or "template0")
            )
        )

    def drop_database(self, name: str) -> None:
        self._execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))

    def _execute(self, statement: sql.Composed) -> None:
        """To make a connection takes as long as to clone a database."""
        if self._administrator is None:
            self._administrator = psycopg.connect(self.url(), autocommit=True)
        self._administrator.execute(statement)

    def _dismiss_administrator(self) -> None:
        if self._administrator is not None:
            self._administrator.close()
            self._administrator = None
