"""The other side of the doorbell: a relay that says it sleeps, and an ear."""

from types import TracebackType
from typing import Self

import psycopg

from pillarbox.core.names import Names


def relay_sleeps(url: str, *, seconds: int = 600) -> None:
    """A relay that sleeps for so long (negative: has woken up since)."""
    with psycopg.connect(url) as connection:
        connection.execute(
            "INSERT INTO outbox_relay (id, lease_until, asleep_until) "
            "VALUES (gen_random_uuid(), now() + interval '1 hour', now() + make_interval(secs => %s))",
            (seconds,),
        )


class Doorbell:
    """Listens on the channel of an outbox."""

    def __init__(self, url: str, names: Names | None = None) -> None:
        self._connection = psycopg.connect(url, autocommit=True)
        self._names = names or Names(schema="public")

    def rang(self) -> bool:
        """Whether it rang since the last time. A notification comes before the answer to any later statement."""
        self._connection.execute("SELECT 1")
        return bool(list(self._connection.notifies(timeout=0)))

    def __enter__(self) -> Self:
        self._connection.execute(f'LISTEN "{self._names.channel}"')
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()
