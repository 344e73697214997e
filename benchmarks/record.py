"""The cost of record compared with an INSERT of the same row, each in its own transaction.

    python -m benchmarks.record [postgresql://…]      (without a URL: a private server, durable)

Three contenders take turns within a round: `bare` executes the INSERT with a row that is ready before the clock starts,
`by hand` also makes its id and its JSON, `record` does all of that, validates, and notifies a sleeping relay. Each
result is the median of the rounds' ratios, with the middle half of them. No relay delivers: how much it works would
depend on the contender. One that always sleeps asks producers for notifications, as a relay does that finds nothing.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager, closing, contextmanager
from multiprocessing import get_context
from statistics import median, quantiles
from typing import Any
from uuid import uuid4

import asyncpg
import psycopg
from sqlalchemy import create_engine
from sqlalchemy.orm import Session

from pillarbox import Event, Outbox
from pillarbox.connections.placeholders import Style, render
from pillarbox.core.rows import EventRow
from pillarbox.record.rows import row_of
from pillarbox.statements import Names, StatementSet, load_statements
from pillarbox.stores.postgres import PostgresStore

PAYLOAD = {"id": 42, "customer": "c-17", "lines": [{"sku": f"sku-{n}", "quantity": n} for n in range(8)]}
INSERT = StatementSet(Names(schema="public"), load_statements("pillarbox.dialects", "record_postgres")).get(
    "append_one"
)
PERCENT = render(INSERT, Style.PERCENT)
CONTENDERS = ("bare", "by hand", "record")
ROUNDS = 9
TRANSACTIONS = {1: 40, 8: 120}
"""Of each writer in each turn."""
MAX_SECONDS = 120.0
"""Seconds after which a writer considers the benchmark crashed."""
SPAWN = get_context("spawn")
OUTBOX = Outbox()

Turn = Callable[[list[Event]], float]
"""Commits each event in its own transaction; returns the seconds it took."""


def ready(event: Event) -> EventRow:
    return row_of(event, registry=None, max_payload=1 << 20)


def by_hand(row: EventRow) -> EventRow:
    """The same row, as a producer without an outbox makes it."""
    return row._replace(event_id=str(uuid4()), payload=json.dumps(PAYLOAD).encode())


def timed(commit: Callable[[Any], None], what: list[Any]) -> float:
    started = time.perf_counter()
    for each in what:
        commit(each)
    return time.perf_counter() - started


def turns(insert: Callable[[EventRow], None], record: Callable[[Event], None]) -> dict[str, Turn]:
    return {
        "bare": lambda events: timed(insert, [ready(event) for event in events]),
        "by hand": lambda events: timed(lambda row: insert(by_hand(row)), [ready(event) for event in events]),
        "record": lambda events: timed(record, events),
    }


@contextmanager
def psycopg_turns(url: str) -> Iterator[dict[str, Turn]]:
    with psycopg.connect(url) as connection:

        def insert(row: EventRow) -> None:
            connection.execute(PERCENT.encode(), row)
            connection.commit()

        def record(event: Event) -> None:
            OUTBOX.record(connection, event)
            connection.commit()

        yield turns(insert, record)


@contextmanager
def sqlalchemy_turns(url: str) -> Iterator[dict[str, Turn]]:
    engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    with Session(engine) as session:

        def insert(row: EventRow) -> None:
            session.connection().exec_driver_sql(PERCENT, row)
            session.commit()

        def record(event: Event) -> None:
            OUTBOX.record(session, event)
            session.commit()

        yield turns(insert, record)
    engine.dispose()


@contextmanager
def asyncpg_turns(url: str) -> Iterator[dict[str, Turn]]:
    """One loop for a whole turn: entering it for each event would hide the differences."""
    with closing(asyncio.new_event_loop()) as loop:
        connection: Any = loop.run_until_complete(asyncpg.connect(url))

        async def insert(row: EventRow) -> None:
            async with connection.transaction():
                await connection.execute(INSERT, *row)

        async def record(event: Event) -> None:
            async with connection.transaction():
                await OUTBOX.arecord(connection, event)

        async def atimed(commit: Any, what: list[Any]) -> float:
            started = time.perf_counter()
            for each in what:
                await commit(each)
            return time.perf_counter() - started

        def run(commit: Any, what: list[Any]) -> float:
            return loop.run_until_complete(atimed(commit, what))

        yield {
            "bare": lambda events: run(insert, [ready(event) for event in events]),
            "by hand": lambda events: run(lambda row: insert(by_hand(row)), [ready(event) for event in events]),
            "record": lambda events: run(record, events),
        }
        loop.run_until_complete(connection.close())


DRIVERS = {"psycopg": psycopg_turns, "SQLAlchemy": sqlalchemy_turns, "asyncpg": asyncpg_turns}


def write(driver: str, url: str, transactions: int, asked: Any, start: Any, seconds: Any) -> None:
    """One writer, in a process of its own: does the turns it is asked for, until it is asked for None."""
    with DRIVERS[driver](url) as known:
        while (contender := asked.get(timeout=MAX_SECONDS)) is not None:
            events = [
                Event("order.placed", PAYLOAD, aggregate_type="ORDER", aggregate_id=str(number))
                for number in range(transactions)
            ]
            start.wait(timeout=MAX_SECONDS)
            seconds.put(known[contender](events))


class Writers:
    """Processes that write at the same time."""

    def __init__(self, driver: str, url: str, number: int) -> None:
        self._url = url
        self._transactions = TRANSACTIONS[number]
        self._asked = [SPAWN.Queue() for _ in range(number)]
        self._start, self._seconds = SPAWN.Barrier(number), SPAWN.Queue()
        for asked in self._asked:
            arguments = (driver, url, self._transactions, asked, self._start, self._seconds)
            SPAWN.Process(target=write, args=arguments, daemon=True).start()

    def rate(self, contender: str) -> float:
        """Transactions per second of one turn, on an empty table."""
        with psycopg.connect(self._url, autocommit=True) as connection:
            connection.execute("TRUNCATE outbox_message")
        for asked in self._asked:
            asked.put(contender)
        taken: list[float] = [self._seconds.get(timeout=MAX_SECONDS) for _ in self._asked]
        return sum(self._transactions / seconds for seconds in taken)

    def rounds(self) -> list[dict[str, float]]:
        """The contenders begin in turn, as the first has a handicap. The first round warms up and does not count."""
        done = []
        for number in range(ROUNDS + 1):
            shift = number % len(CONTENDERS)
            order = CONTENDERS[shift:] + CONTENDERS[:shift]
            done.append({contender: self.rate(contender) for contender in order})
        return done[1:]

    def end(self) -> None:
        for asked in self._asked:
            asked.put(None)


@asynccontextmanager
async def awake(url: str) -> AsyncIterator[None]:
    """No relay asks for notifications: there is none, or it is awake."""
    yield


@asynccontextmanager
async def asleep(url: str) -> AsyncIterator[None]:
    """A relay that always sleeps, and never delivers."""
    store = PostgresStore(url)
    await store.wakeup.request("sleeper", 3600)

    async def listen() -> None:
        while True:
            await store.wakeup.wait(3600)

    listening = asyncio.create_task(listen())
    yield
    listening.cancel()
    await asyncio.gather(listening, return_exceptions=True)
    await store.aclose()


RELAYS: dict[str, Callable[[str], AbstractAsyncContextManager[None]]] = {
    "none, or awake": awake,
    "always asleep": asleep,
}


def shown(ratios: list[float]) -> str:
    low, _, high = quantiles(ratios, n=4)
    return f"{median(ratios):8.2f} ({low:.2f} to {high:.2f})"


async def run(url: str) -> None:
    store = PostgresStore(url)
    await store.schema.apply()
    await store.aclose()
    print(f"{'rate of record':18}{'relay':18}{'of the bare INSERT':>24}{'of one by hand':>24}")
    for number, driver in [*((1, driver) for driver in DRIVERS), (8, "psycopg")]:
        writers = Writers(driver, url, number)
        for name, relay in RELAYS.items():
            async with relay(url):
                rounds = await asyncio.to_thread(writers.rounds)
            ratios = [shown([each["record"] / each[other] for each in rounds]) for other in ("bare", "by hand")]
            print(f"{number} x {driver:14}{name:18}{ratios[0]:>24}{ratios[1]:>24}", flush=True)
        writers.end()


def on_database(run: Callable[[str], Coroutine[Any, Any, None]]) -> None:
    """Run it with the URL of the command line, or with that of a private PostgreSQL."""
    with ExitStack() as stack:
        if len(sys.argv) > 1:
            url = sys.argv[1]
        else:
            from tests.servers.postgres import PostgresServer

            url = stack.enter_context(PostgresServer()).url()
        asyncio.run(run(url))


if __name__ == "__main__":
    on_database(run)
