"""Compares other forms of the statement of record.

    python -m benchmarks.record_forms [postgresql://…]      (without a URL: a private server, durable)

The results are ratios within one run, because machines differ. Each line is the median of
several rounds; a round is one transaction, rolled back so that the table stays small.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from statistics import median
from typing import Any

import asyncpg
import psycopg

from benchmarks.record import PAYLOAD, on_database
from pillarbox import Event, Outbox
from pillarbox.connections.placeholders import Style, render
from pillarbox.core.rows import EventRow
from pillarbox.record.rows import row_of
from pillarbox.statements import Names, StatementSet, load_statements
from pillarbox.stores.postgres import PostgresStore

ROUNDS = {1: 1000, 10: 300, 1000: 10}
NAMES = Names(schema="public")
STATEMENTS = StatementSet(NAMES, load_statements("pillarbox.dialects", "record_postgres"))
UNNEST = STATEMENTS.get("append")
VALUES = STATEMENTS.get("append_one")
# COPY cannot fall back to the database's clock within a column, hence without the two times.
COPIED = 13

Work = Callable[[list[Event]], Awaitable[None]]


async def measure(forms: dict[str, Work], size: int, begin: Callable[[], Any]) -> dict[str, float]:
    """Microseconds per event of each form, without BEGIN and ROLLBACK; the forms take turns, round by round."""
    taken: dict[str, list[float]] = {name: [] for name in forms}
    for _ in range(ROUNDS[size]):
        for name, work in forms.items():
            events = [Event("order.placed", PAYLOAD, aggregate_type="ORDER", aggregate_id=str(n)) for n in range(size)]
            transaction = begin()
            await transaction.start()
            started = time.perf_counter()
            await work(events)
            taken[name].append(time.perf_counter() - started)
            await transaction.rollback()
    return {name: median(times) / size * 1e6 for name, times in taken.items()}


class PsycopgTransaction:
    """The two verbs of asyncpg's transaction, for psycopg."""

    def __init__(self, connection: psycopg.AsyncConnection) -> None:
        self._connection = connection

    async def start(self) -> None:
        await self._connection.execute("SELECT 1")

    async def rollback(self) -> None:
        await self._connection.rollback()


def rows_of(events: list[Event]) -> list[EventRow]:
    return [row_of(event, registry=None, max_payload=1 << 20) for event in events]


def columns_of(events: list[Event]) -> list[list[object]]:
    return [list(column) for column in zip(*rows_of(events), strict=True)]


def asyncpg_forms(connection: Any) -> dict[str, Work]:
    async def unnest(events: list[Event]) -> None:
        await connection.fetch(UNNEST, *columns_of(events))

    async def values(events: list[Event]) -> None:
        rows = rows_of(events)
        if len(rows) == 1:
            await connection.fetch(VALUES, *rows[0])
        else:
            await connection.executemany(VALUES, rows)

    async def copy(events: list[Event]) -> None:
        rows = [row[:COPIED] for row in rows_of(events)]
        await connection.copy_records_to_table("outbox_message", records=rows, columns=EventRow._fields[:COPIED])

    return recorded(connection) | {"unnest": unnest, "VALUES (executemany)": values, "COPY": copy}


def psycopg_forms(connection: psycopg.AsyncConnection) -> dict[str, Work]:
    async def unnest(events: list[Event]) -> None:
        async with connection.cursor() as cursor:
            await cursor.execute(render(UNNEST, Style.PERCENT), columns_of(events))

    async def values(events: list[Event]) -> None:
        rows = rows_of(events)
        async with connection.cursor() as cursor:
            if len(rows) == 1:
                await cursor.execute(render(VALUES, Style.PERCENT), rows[0])
            else:
                await cursor.executemany(render(VALUES, Style.PERCENT), rows)

    async def copy(events: list[Event]) -> None:
        statement = f"COPY outbox_message ({', '.join(EventRow._fields[:COPIED])}) FROM STDIN"
        async with connection.cursor() as cursor, cursor.copy(statement) as stream:
            for row in rows_of(events):
                await stream.write_row(row[:COPIED])

    return recorded(connection) | {"unnest": unnest, "VALUES (executemany)": values, "COPY": copy}


def recorded(connection: Any) -> dict[str, Work]:
    outbox, quiet = Outbox(), Outbox(wakeup="none")

    async def notifying(events: list[Event]) -> None:
        await outbox.arecord(connection, *events)

    async def silent(events: list[Event]) -> None:
        await quiet.arecord(connection, *events)

    return {"arecord, no wakeup": silent, "arecord, wakeup": notifying}


async def compare(driver: str, forms: dict[str, Work], begin: Callable[[], Any]) -> None:
    print(f"\n{driver:24}" + "".join(f"{size:>10} events   ratio" for size in ROUNDS))
    costs = [await measure(forms, size, begin) for size in ROUNDS]
    for name in forms:
        print(f"  {name:22}" + "".join(f"{cost[name]:13.1f} µs {cost[name] / cost['unnest']:7.2f}" for cost in costs))


async def run(url: str) -> None:
    store = PostgresStore(url)
    await store.schema.apply()
    await store.aclose()
    own = await asyncpg.connect(url)
    await compare("asyncpg", asyncpg_forms(own), own.transaction)
    await own.close()
    async with await psycopg.AsyncConnection.connect(url) as connection:
        await compare("psycopg", psycopg_forms(connection), lambda: PsycopgTransaction(connection))


if __name__ == "__main__":
    on_database(run)
