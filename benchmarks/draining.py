"""Measures how a contender's processes drain a backlog in PostgreSQL into a queue of RabbitMQ."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, aclosing, closing, contextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, NamedTuple, Self

import psycopg

from benchmarks.broker import Queues, raw_rate
from benchmarks.events import FILL, KEYS
from benchmarks.processes import Worker, cpu_seconds, workers
from benchmarks.results import Sample
from pillarbox.core.lane import LANES
from pillarbox.stores.postgres import PostgresStore
from tests.servers.postgres import PostgresServer
from tests.servers.processes import ServerFailed
from tests.servers.rabbitmq import RabbitMQServer
from tests.servers.waiting import wait_until

DATABASE, QUEUE = "bench", "bench"
PAUSE = 0.02
"""Seconds between two polls of the queue."""
STUCK = 60.0
"""Seconds without a new message after which a contender has failed."""
SETTINGS = {"max_wal_size": "4GB", "shared_buffers": "256MB"}
COUNTING = {"shared_preload_libraries": "pg_stat_statements", "pg_stat_statements.track": "none"}
RELAY = "benchmarks.workers.relay"


class Lost(Exception):
    """Events did not arrive; the result of a contender that loses events would be meaningless."""


class Costs(NamedTuple):
    """Per event, from a run that is not timed."""

    calls: float
    statements: float | None


def apply_schema(url: str) -> None:
    """Make the tables of Pillarbox."""

    async def apply() -> None:
        async with aclosing(PostgresStore(url)) as store:
            await store.schema.apply()

    asyncio.run(apply())


@dataclass(frozen=True, slots=True, kw_only=True)
class Draining:
    """A contender: its process and options, and the number of events and keys."""

    events: int
    keys: int = KEYS
    relays: int = 1
    module: str = RELAY
    python: str = sys.executable
    options: Mapping[str, Any] = field(default_factory=dict)
    prepare: Callable[[str], None] = apply_schema
    """Makes the tables in the database of this URL."""
    fill: str = FILL
    """Writes the backlog of `events` events with `keys` keys. "": there is none."""
    table: str = "outbox_message"
    while_running: bool = False
    """The backlog is committed at once while the relays wait for it; else they find it when they start."""


@contextmanager
def private_servers() -> Iterator[Servers]:
    """A private PostgreSQL, durable, and a private RabbitMQ."""
    with ExitStack() as stack:
        counts = True
        try:
            postgres = stack.enter_context(PostgresServer(settings=SETTINGS | COUNTING))
        except ServerFailed:
            # An installation without the contributed modules.
            postgres, counts = stack.enter_context(PostgresServer(settings=SETTINGS)), False
        rabbitmq = stack.enter_context(RabbitMQServer())
        yield stack.enter_context(closing(Servers(postgres, rabbitmq, counts_statements=counts)))


class Servers:
    """The servers of a run."""

    def __init__(self, postgres: PostgresServer, rabbitmq: RabbitMQServer, *, counts_statements: bool = False) -> None:
        self.postgres, self.rabbitmq, self.counts_statements = postgres, rabbitmq, counts_statements
        self.queues = Queues(rabbitmq.url(), rabbitmq.port)
        self._templates: dict[Callable[[str], None], str] = {}

    def close(self) -> None:
        """Remove everything from the servers."""
        self.queues.close()
        for name in self._templates.values():
            self.postgres.drop_database(name)

    def raw(self, kind: str, messages: int, *, window: int = 1000) -> float:
        """Messages a second that a queue of this type confirms."""
        self.queues.make(QUEUE, kind)
        try:
            return raw_rate(self.rabbitmq.port, QUEUE, messages, window=window)
        finally:
            self.queues.remove(QUEUE)

    def drain(self, way: Draining, kind: str) -> Sample:
        """One sample. Raises Lost unless every event arrived."""
        with self._backlog(way, kind) as backlog, self._relays(way) as relays:
            began = backlog.begin(relays)
            before, relays_before = self._cpu(), sum(cpu_seconds(relay.pid) for relay in relays)
            seconds = backlog.wait_arrived(relays) - began
            reports = [relay.finish() for relay in relays]
            postgres, rabbitmq = (after - then for after, then in zip(self._cpu(), before, strict=True))
            # Relays that run already have used some before the backlog came.
            python = sum(report["whole_cpu" if way.while_running else "cpu"] for report in reports)
            python -= relays_before if way.while_running else 0.0
            each = 1e6 / way.events
            return Sample(
                events=way.events,
                seconds=seconds,
                python=python * each,
                postgres=postgres * each,
                rabbitmq=rabbitmq * each,
                memory=max(report["memory"] for report in reports),
                repeats=backlog.check(),
            )

    def count(self, way: Draining, kind: str) -> Costs:
        """Python calls and statements per event, from a separate profiled run."""
        with self._backlog(way, kind, counting=True) as backlog, self._relays(way, profile=True) as relays:
            backlog.begin(relays)
            backlog.wait_arrived(relays)
            calls = sum(relay.finish()["calls"] for relay in relays)
            backlog.check()
            return Costs(calls / way.events, backlog.statements(way.events))

    def make_database(self, prepare: Callable[[str], None]) -> None:
        """The database of a sample, with its tables and nothing in them."""
        if prepare not in self._templates:
            name = f"{DATABASE}_template_{len(self._templates)}"
            self.postgres.create_database(name)
            prepare(self.postgres.url(name))
            self._templates[prepare] = name
        self.postgres.create_database(DATABASE, self._templates[prepare])

    def _relays(self, way: Draining, *, profile: bool = False) -> AbstractContextManager[list[Worker]]:
        job = {
            "store": self.postgres.url(DATABASE),
            "broker": self.rabbitmq.url(),
            "queue": QUEUE,
            "events": way.events,
            "history": False,
            "ledger": False,
            "body": "payload",
            "profile": profile,
            **way.options,
        }
        return workers(way.module, [job] * way.relays, python=way.python)

    def _cpu(self) -> tuple[float, float]:
        return cpu_seconds(self.postgres.pid), cpu_seconds(self.rabbitmq.pid)

    def _backlog(self, way: Draining, kind: str, *, counting: bool = False) -> Backlog:
        return Backlog(self, way, kind, counting=counting and self.counts_statements)


class Backlog:
    """A database with pending events and an empty queue; both are removed afterwards."""

    def __init__(self, servers: Servers, way: Draining, kind: str, *, counting: bool) -> None:
        self._servers, self._way, self._kind, self._counting = servers, way, kind, counting

    def __enter__(self) -> Self:
        servers, way = self._servers, self._way
        servers.queues.make(QUEUE, self._kind)
        servers.make_database(way.prepare)
        self._connection = psycopg.connect(servers.postgres.url(DATABASE), autocommit=True)
        if self._counting:
            self._connection.execute("CREATE EXTENSION pg_stat_statements")
            self._connection.execute(f"ALTER DATABASE {DATABASE} SET pg_stat_statements.track = 'top'")
        if way.fill and not way.while_running:
            self._fill()
            self._connection.execute(f"VACUUM ANALYZE {way.table}")
        if self._counting:
            self._connection.execute("SELECT pg_stat_statements_reset()")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()
        self._servers.postgres.drop_database(DATABASE)
        self._servers.queues.remove(QUEUE)

    def begin(self, relays: Sequence[Worker]) -> float:
        """Let the relays work; the moment from which the time counts."""
        for relay in relays:
            relay.go()
        if not self._way.while_running:
            return time.perf_counter()
        wait_until(lambda: self._shared(len(relays)), bound=STUCK, what="the relays share the lanes")
        self._fill()
        return time.perf_counter()

    def wait_arrived(self, relays: Sequence[Worker]) -> float:
        """The moment at which as many messages as events are in the queue. Raises Lost if they stop coming."""
        depth, since = 0, time.perf_counter()
        while True:
            found, now = self._servers.queues.depth(QUEUE), time.perf_counter()
            if found >= self._way.events:
                return now
            if found > depth:
                depth, since = found, now
            elif now - since > STUCK:
                raise Lost(f"{self._way.events - found} of {self._way.events} events did not arrive in {STUCK:g} s")
            for relay in relays:
                relay.check()
            time.sleep(PAUSE)

    def check(self) -> int:
        """How many messages too many arrived. Raises Lost if an event is missing."""
        arrived = self._servers.queues.take_all(QUEUE)
        missing = set(range(1, self._way.events + 1)) - arrived.numbers
        if missing:
            raise Lost(f"{len(missing)} of {self._way.events} events are missing, such as {min(missing)}")
        return arrived.repeats

    def statements(self, events: int) -> float | None:
        """Statements per event since the backlog was made."""
        if not self._counting:
            return None
        row = self._connection.execute(
            "SELECT sum(calls) FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid "
            "WHERE d.datname = current_database()"
        ).fetchone()
        return float(row[0]) / events if row and row[0] else None

    def _fill(self) -> None:
        self._connection.execute(self._way.fill.encode(), {"keys": self._way.keys, "events": self._way.events})

    def _shared(self, relays: int) -> bool:
        owned = self._connection.execute("SELECT count(*) FROM outbox_lane WHERE owner IS NOT NULL GROUP BY owner")
        counts = [int(row[0]) for row in owned]
        return len(counts) == relays and min(counts) == LANES // relays
