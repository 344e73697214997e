"""Connections of the four roles."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg

from tests.databases import Sql

ROLES = ("producer", "relay", "reader", "migrator")


@asynccontextmanager
async def logged_in(url: str, role: str) -> AsyncIterator[Sql]:
    connection = await asyncpg.connect(url, user=role)
    try:
        yield connection
    finally:
        await connection.close()
