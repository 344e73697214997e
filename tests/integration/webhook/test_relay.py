"""From a committed transaction to a receiver and its inbox: SQLite, a relay, webhooks."""

import asyncio
import sqlite3
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from shutil import copyfile
from typing import Any

import pytest
from aiohttp import web

from pillarbox import Destination, Event, FixedDelay, Inbox, Outbox, Relay, RelayConfig, Route
from pillarbox.core.clock import seconds
from pillarbox.core.observations import BreakerChanged, Observation
from pillarbox.stores.sqlite import SqliteStore
from pillarbox.testing.lookup import find_event
from pillarbox.testing.waiting import eventually
from pillarbox.transports.webhook import WebhookTransport, WebhookVerifier
from tests.integration.webhook.conftest import MakeTransport
from tests.integration.webhook.receiver import Received, Receiver, accepted
from tests.servers import processes
from tests.servers.ports import free_port, is_open
from tests.servers.waiting import wait_until

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
CONFIG = RelayConfig(poll_interval="20ms", heartbeat_interval="200ms", lease="2s", send_timeout="500ms")
ROOT = Path(__file__).resolve().parents[3]
KEYS = 10


@pytest.fixture
async def store(sqlite_template: Path, tmp_path: Path) -> AsyncIterator[SqliteStore]:
    path = Path(copyfile(sqlite_template, tmp_path / "outbox.db"))
    store = SqliteStore(path)
    yield store
    await store.aclose()


@pytest.fixture
def database(store: SqliteStore, tmp_path: Path) -> Path:
    return tmp_path / "outbox.db"


def record(database: Path, *events: Event) -> None:
    connection = sqlite3.connect(database)
    with connection:
        Outbox().record(connection, *events)
    connection.close()


def events(count: int, event_type: str = "order.placed", start: int = 0) -> list[Event]:
    return [
        Event(event_type, {"n": n}, event_id=f"{event_type}-{n}", key=f"k{n % KEYS}")
        for n in range(start, start + count)
    ]


@asynccontextmanager
async def relaying(store: SqliteStore, transport: WebhookTransport, **options: Any) -> AsyncIterator[Relay]:
    given: dict[str, Any] = {"retry": FixedDelay(delay="50ms", max_attempts=5), "config": CONFIG} | options
    async with Relay(store=store, transports={"hooks": transport}, **given) as relay:
        yield relay


def in_order(ids: list[str]) -> bool:
    """Whether the first deliveries of each key came in their order."""
    numbers = [int(one.rpartition("-")[2]) for one in dict.fromkeys(ids)]
    return all(
        own == sorted(own) for own in ([number for number in numbers if number % KEYS == key] for key in range(KEYS))
    )


async def status(store: SqliteStore, event_id: str) -> str:
    return str((await find_event(store, event_id))[0].status)


async def test_each_event_has_its_effect_once_through_the_inbox(
    make: MakeTransport, receiver: Receiver, store: SqliteStore, database: Path, tmp_path: Path
) -> None:
    """The receiver verifies, admits and handles in one transaction; every third response gets lost."""
    effects = sqlite3.connect(tmp_path / "receiver.db", isolation_level=None)
    effects.executescript(store.schema.sql())
    effects.execute("CREATE TABLE effect (event_id text)")
    verifier, inbox, requests = WebhookVerifier(SECRET), Inbox(), 0

    def handle(request: Received) -> web.Response:
        nonlocal requests
        requests += 1
        event = verifier.verify(request.headers, request.body)
        effects.execute("BEGIN")
        if inbox.admit(effects, "receiver", event.event_id):
            effects.execute("INSERT INTO effect VALUES (?)", [event.event_id])
        effects.execute("COMMIT")
        return web.Response(status=503 if requests % 3 == 0 else 200)

    receiver.answer = handle
    record(database, *events(30))
    async with relaying(store, make(receiver.url(), secrets=[SECRET])):

        async def empty() -> bool:
            return (await store.statistics.backlog()).messages == 0

        await eventually(empty, within=60)
    found = [one for (one,) in effects.execute("SELECT event_id FROM effect")]
    effects.close()
    assert sorted(found) == sorted(event.event_id for event in events(30))
    assert in_order(found)
    assert len(receiver.requests) > 30


async def test_an_outage_is_waited_for_and_costs_no_attempt(
    make: MakeTransport, store: SqliteStore, database: Path
) -> None:
    receiver = Receiver()
    async with receiver:
        transport = make(receiver.url())
    record(database, *events(20))
    async with relaying(store, transport, retry=FixedDelay(delay="10ms", max_attempts=1)):

        async def failing() -> bool:
            return any(row.last_error for row in await store.destinations.overrides())

        await eventually(failing, within=30)
        async with receiver:

            async def all_arrived() -> bool:
                return len(set(receiver.ids())) == 20

            await eventually(all_arrived, within=60)
    assert in_order(receiver.ids())
    assert not (await store.statistics.backlog()).dead


async def test_a_slow_receiver_does_not_hold_up_another(
    make: MakeTransport, receiver: Receiver, store: SqliteStore, database: Path
) -> None:
    release = asyncio.Event()

    async def slow(_: Received) -> web.StreamResponse:
        await release.wait()
        return web.Response()

    receiver.answer = lambda request: slow(request) if request.path == "/slow" else accepted(request)
    destinations = {name: Destination(WebhookTransport.to(f"/{name}")) for name in ("slow", "fast")}
    routes = [Route(event_type="slow", to=["slow"]), Route(to=["fast"])]
    transport = make(receiver.url(), connections_per_host=8, total_connections=10, send_timeout="60s")
    record(database, *events(40, "slow"), *events(100, "fast"))
    async with relaying(store, transport, destinations=destinations, routes=routes):

        async def others_arrived() -> bool:
            return len(receiver.ids("/fast")) == 100

        await eventually(others_arrived, within=60)
        assert len(receiver.ids("/slow")) <= 8
        release.set()

        async def all_arrived() -> bool:
            return len(receiver.ids("/slow")) == 40

        await eventually(all_arrived, within=60)
    assert in_order(receiver.ids("/fast"))
    assert in_order(receiver.ids("/slow"))


async def test_the_wait_that_a_receiver_asks_for_is_kept(
    make: MakeTransport, receiver: Receiver, store: SqliteStore, database: Path
) -> None:
    requests = 0
    observed: list[Observation] = []

    def busy_once(_: Received) -> web.Response:
        nonlocal requests
        requests += 1
        return web.Response(status=429, headers={"Retry-After": "3"}) if requests == 1 else web.Response()

    receiver.answer = busy_once
    record(database, *events(1))
    async with relaying(store, make(receiver.url()), observers=[observed.append]):
        await eventually(lambda: requests)
        record(database, *events(5, start=1))
        await eventually(lambda: requests == 7)
    opened, *_ = (one for one in observed if isinstance(one, BreakerChanged) and one.state == "open")
    # Without the receiver's request the relay probes after 2 s at most.
    assert seconds(CONFIG.breaker.max_delay) < opened.next_probe <= 3
    assert not (await store.statistics.backlog()).dead


async def test_a_receiver_that_is_gone_is_paused_until_an_operator_resumes_it(
    make: MakeTransport, receiver: Receiver, store: SqliteStore, database: Path
) -> None:
    receiver.answer = lambda _: web.Response(status=410)
    record(database, *events(3))
    async with relaying(store, make(receiver.url()), name="r1"):

        async def paused() -> bool:
            return any(row.paused and row.destination == "webhook" for row in await store.destinations.overrides())

        await eventually(paused, within=30)
        [row] = [row for row in await store.destinations.overrides() if row.destination == "webhook"]
        assert "410 Gone" in (row.last_error or "")
        entries = (await store.admin.audit.list(limit=10)).entries
        assert [(entry.what, entry.subject) for entry in entries] == [("override", "webhook")]
        receiver.answer = accepted
        await store.admin.requests.override("webhook", paused=False, by="ann")

        async def all_arrived() -> bool:
            return {"order.placed-0", "order.placed-1", "order.placed-2"} <= set(receiver.ids()[-3:])

        await eventually(all_arrived, within=30)
    assert (await find_event(store, "order.placed-0"))[0].attempts <= 1


async def test_a_rejected_event_is_retried_by_its_policy_and_dead_lettered(
    make: MakeTransport, receiver: Receiver, store: SqliteStore, database: Path
) -> None:
    receiver.answer = lambda request: (
        web.Response(status=422, text="no such order") if request.event_id == "order.placed-1" else accepted(request)
    )
    record(database, *events(4))
    async with relaying(store, make(receiver.url())):

        async def dead() -> bool:
            return await status(store, "order.placed-1") == "FAILED"

        await eventually(dead, within=30)
    assert receiver.ids().count("order.placed-1") == 5
    assert "422 Unprocessable" in str((await find_event(store, "order.placed-1"))[0].last_error)
    assert await status(store, "order.placed-3") == "PUBLISHED"


@contextmanager
def receiving(port: int, journal: Path, folder: Path) -> Iterator[processes.Started]:
    command = [sys.executable, "-m", "tests.integration.webhook.receiver_process", str(port), str(journal)]
    path = {"PYTHONPATH": f"{ROOT}:{ROOT / 'src'}"}
    started = processes.spawn(
        command,
        name="receiver",
        folder=folder,
        log=folder / "receiver.log",
        ports=(port,),
        environment=path,
        privileged=True,
    )
    try:
        wait_until(lambda: started.must_run() and is_open(port), bound=60, what="the receiver accepts connections")
        yield started
    finally:
        started.kill()
        started.wait_gone(bound=30)
        processes.forget(started)


async def test_nothing_accepted_is_lost_when_the_receiver_is_killed(
    make: MakeTransport, store: SqliteStore, database: Path
) -> None:
    folder = processes.make_folder("webhook-receiver")
    journal, port, count = folder / "journal", free_port(), 400
    transport = make(f"http://127.0.0.1:{port}")

    def written() -> list[str]:
        return journal.read_text().split() if journal.exists() else []

    async def more_than(number: int) -> None:
        async def enough() -> bool:
            return len(set(written())) > number

        await eventually(enough, within=60)

    try:
        async with relaying(store, transport):
            for life in range(3):
                with receiving(port, journal, folder):
                    record(database, *events(count, start=life * count))
                    await more_than(life * count + count // 4)
            with receiving(port, journal, folder):
                await more_than(3 * count - 1)
        ids = written()
    finally:
        processes.remove_folder(folder)
    assert set(ids) == {event.event_id for event in events(3 * count)}
    assert in_order(ids)
