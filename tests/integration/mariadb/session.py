"""A plain connection, apart from the store."""

from typing import Any, Self

import asyncmy

from tests.integration.record.mariadb_ways import connect_arguments


class Session:
    """Runs statements in autocommit mode, or between BEGIN and COMMIT."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection: Any = None

    async def __aenter__(self) -> Self:
        self._connection = await asyncmy.connect(**connect_arguments(self._url), autocommit=True)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._connection.ensure_closed()

    async def execute(self, statement: str, *arguments: object) -> list[tuple[Any, ...]]:
        async with self._connection.cursor() as cursor:
            await cursor.execute(statement, arguments or None)
            return list(await cursor.fetchall()) if cursor.description else []

    async def value(self, statement: str, *arguments: object) -> Any:
        [[value]] = await self.execute(statement, *arguments)
        return value

    async def insert(self, count: int = 1, *, first: int = 1, key: str = "NULL") -> None:
        """Insert events e1, e2, …"""
        await self.execute(
            "INSERT INTO outbox_message (event_id, event_type, payload, ordering_key)"
            f" SELECT concat('e', seq), 'order.placed', '{{}}', {key} FROM seq_{first}_to_{first + count - 1}"
        )

    async def waits_for_a_lock(self) -> bool:
        """Whether a statement waits for a row. The list of transactions would be as old as the last call but one."""
        counted = "SELECT variable_value FROM information_schema.global_status WHERE variable_name = %s"
        return int(await self.value(counted, "INNODB_ROW_LOCK_CURRENT_WAITS")) > 0
