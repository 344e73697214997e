"""The relay's side of the wake-up: a session that requests notifications, and one that listens."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

import psycopg

from pillarbox.statements import Names
from pillarbox.stores.postgres.statements import PostgresStatements

PUBLIC = Names(schema="public")


@contextmanager
def sleeping_relay(url: str, names: Names = PUBLIC) -> Iterator[None]:
    """A relay that sleeps during the block."""
    with psycopg.connect(url, autocommit=True) as connection:
        statements = PostgresStatements(names)
        connection.execute(statements.get("hold_wakeup_lock").encode())
        yield
        connection.execute(statements.get("release_wakeup_lock").encode())


class Listener:
    """Listens on the channel of an outbox."""

    def __init__(self, url: str, names: Names = PUBLIC) -> None:
        self._connection = psycopg.connect(url, autocommit=True)
        self._names = names

    def notified(self) -> bool:
        """Whether a notification arrived since the last call."""
        return self.count() > 0

    def count(self) -> int:
        """The notifications since the last call. They arrive before the result of any later statement."""
        self._connection.execute("SELECT 1")
        return len(list(self._connection.notifies(timeout=0)))

    def __enter__(self) -> Self:
        self._connection.execute(f'LISTEN "{self._names.channel}"')
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()
