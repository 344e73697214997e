"""What tests of migrations do with a database, and what they read of it."""

import asyncio
import os
import subprocess
import sys
from contextlib import aclosing

import psycopg

from pillarbox import open_store
from pillarbox.core.store import SchemaStatus

ALIASES = (
    "event_outbox",
    "processed_event",
    "outbox_events",
    "outbox_integration",
    "outbox_alias",
    "outbox_dlq",
    "outbox_outbox",
)
"""How the names of the compatibility views and of their functions begin."""


def with_driver(url: str, driver: str) -> str:
    return f"{driver}://{url.partition('://')[2]}"


def status(url: str) -> SchemaStatus:
    async def read() -> SchemaStatus:
        async with aclosing(open_store(url)) as store:
            return await store.schema.status()

    return asyncio.run(read())


def apply(url: str, *, aliases: bool = False) -> None:
    async def run() -> None:
        async with aclosing(open_store(url)) as store:
            await store.schema.apply(aliases=aliases)

    asyncio.run(run())


def execute(url: str, statement: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


def printed(url: str, *options: str) -> str:
    command = [sys.executable, "-m", "pillarbox", "schema", "sql", *options]
    return subprocess.run(
        command, env={**os.environ, "PILLARBOX_STORE": url}, check=True, capture_output=True, text=True
    ).stdout


def psql(url: str, script: str) -> None:
    """Run a script that Alembic printed, with its own BEGIN and COMMIT."""
    command = ["psql", "--quiet", "--no-psqlrc", "--set", "ON_ERROR_STOP=1", url]
    ran = subprocess.run(command, input=script, text=True, check=False, capture_output=True)
    assert ran.returncode == 0, ran.stderr
