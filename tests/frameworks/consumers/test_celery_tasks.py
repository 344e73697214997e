"""Events as Celery tasks: names, queues and headers with a real worker; the inbox of tasks in their transaction."""

import asyncio
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from celery import Celery
from sqlalchemy import Connection, create_engine, text
from sqlalchemy.ext.asyncio import create_async_engine

from pillarbox import ConfigurationError, Event, Inbox, Outbox, Relay, Route
from pillarbox.admin.diagnosis import CheckResult
from pillarbox.core.errors import PermanentError, UnavailableError
from pillarbox.integrations.celery import CeleryTransport, InboxTask
from pillarbox.schemes import open_transport, transport_plugin
from pillarbox.stores.postgres import PostgresStore
from pillarbox.testing.conformance.transports import outgoing
from pillarbox.transports.rabbitmq import RabbitMQTransport
from tests.frameworks.consumers.shop import Shop

TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
TASKS = """
import json, os
import psycopg
from celery import Celery

app = Celery("audit", broker=os.environ["AMQP_URL"])
app.conf.task_default_queue_type = os.environ.get("QUEUE_TYPE", "classic")


@app.task(bind=True, name="audit.note")
def note(self, payload):
    with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
        noted = [self.request.id, repr(payload), json.dumps(self.request.headers)]
        connection.execute("INSERT INTO noted VALUES (%s, %s, %s)", noted)
"""

RETRYING = """
import os
import psycopg
from celery import Celery
from pillarbox.integrations.celery import InboxTask

app = Celery("retrying", broker=os.environ["AMQP_URL"])


def connect():
    return psycopg.connect(os.environ["DATABASE_URL"])


@app.task(base=InboxTask, transaction=connect, bind=True, name="order.placed")
def bill(self, connection, order):
    connection.execute("INSERT INTO invoice (order_id) VALUES (%s)", [order["id"]])
    with open("attempts", "a") as attempts:
        attempts.write(f"{self.request.id}:{self.request.retries}\\n")
    if self.request.retries == 0:
        raise self.retry(countdown=0)
"""


@pytest.fixture
def noted(shop: Shop) -> Callable[[], list[tuple[str, str, str]]]:
    with psycopg.connect(shop.database) as connection:
        connection.execute("CREATE TABLE noted (id text, payload text, headers text)")

    def rows() -> list[tuple[str, str, str]]:
        with psycopg.connect(shop.database) as connection:
            return connection.execute("SELECT * FROM noted ORDER BY id").fetchall()

    return rows


def test_a_route_names_task_and_queue_and_the_task_has_id_payload_and_trace_of_the_event(
    shop: Shop, noted: Callable[[], list[tuple[str, str, str]]], tmp_path: Path
) -> None:
    (tmp_path / "audit.py").write_text(TASKS)
    events = [
        Event(
            "order.placed",
            {"id": 1, "name": 'é "quoted" 🚀'},
            event_id="e-1",
            trace_id=TRACEPARENT,
            headers={"retries": "x"},
        ),
        Event("image.stored", b"\xff\x00", event_id="e-2"),
    ]
    with psycopg.connect(shop.database) as connection:
        Outbox().record(connection, *events)
    publish(shop, CeleryTransport.to(task="audit.note", queue="audit"))
    with shop.consumer([sys.executable, "-m", "celery", "--app", "audit", "worker", "--queues", "audit"], tmp_path):
        shop.wait(lambda: len(noted()) == 2, "both tasks ran")
    first, second = noted()
    assert first[:2] == ("e-1", repr({"id": 1, "name": 'é "quoted" 🚀'}))
    assert second[:2] == ("e-2", repr(b"\xff\x00"))
    headers = json.loads(first[2])
    assert (headers["traceparent"], headers["eventType"]) == (TRACEPARENT, "order.placed")


def publish(shop: Shop, address: Any) -> None:
    async def relay() -> None:
        store = PostgresStore(shop.database)
        transport = CeleryTransport(shop.broker.replace("amqp", "celery", 1))
        try:
            await Relay(
                store=store,
                transports={"tasks": transport},
                destinations={"audit": address},
                routes=[Route(to=["audit"])],
            ).run_until_empty()
        finally:
            await transport.aclose()
            await store.aclose()

    asyncio.run(relay())


# The transport


async def test_an_application_gives_its_broker_its_queue_and_their_type(shop: Shop) -> None:
    app = Celery("shop", broker=shop.broker, task_default_queue="tasks", task_default_queue_type="quorum")
    transport = CeleryTransport.from_app(app)
    try:
        [address] = transport.defaults("order.placed").values()
        assert await transport.send([outgoing("e1", address)]) == [None]
    finally:
        await transport.aclose()
    shop.declare("tasks", **{"x-queue-type": "quorum"})
    assert shop.ready("tasks") == 1


def test_the_virtual_host_in_the_way_of_celery() -> None:
    transport = CeleryTransport.from_app(Celery("shop", broker="pyamqp://guest:secret@mq:5673//"))
    assert repr(transport) == "<CeleryTransport over <RabbitMQTransport at mq:5673, virtual host '/'>>"


@pytest.mark.parametrize(
    ("broker", "says"),
    [
        ("redis://localhost/0", "redis://; events become tasks on RabbitMQ only"),
        ("amqp://one/;amqp://two/", "several brokers"),
        (["amqp://one/", "amqp://two/"], "several brokers"),
    ],
)
def test_an_application_whose_broker_cannot_be_used(broker: Any, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        CeleryTransport.from_app(Celery("shop", broker=broker))


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: CeleryTransport("amqp://secret@mq/"), "must begin with celery:// or celerys://"),
        (lambda: CeleryTransport("celery://mq/", queue=""), "must have a name"),
        (lambda: open_transport("celery://mq/", queue_type="stream"), '"quorum" or "classic"'),
        (lambda: open_transport("celery://mq/", pool=3), "options of a transport for Celery.*pool"),
        (lambda: transport_plugin("celery").address("x", {"tsk": "a"}), "options of a destination for Celery.*tsk"),
        (lambda: CeleryTransport.to(task=""), "the task has no name"),
        (lambda: CeleryTransport.to(task="{customer}"), "asks for {customer}"),
        (lambda: CeleryTransport.to(queue="x" * 256), "shorter name"),
    ],
)
def test_invalid_settings_are_rejected_early(make: Callable[[], object], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says) as raised:
        make()
    assert "secret" not in str(raised.value)


async def test_a_wrong_address_and_a_missing_value_fail_only_their_own_message(shop: Shop) -> None:
    transport = open_transport(shop.broker.replace("amqp", "celery", 1))
    no_key = outgoing("no-key", CeleryTransport.to(task="{key}"))
    batch = [
        outgoing("good", CeleryTransport.to(queue="mail")),
        outgoing("elsewhere", RabbitMQTransport.to()),
        no_key._replace(message=no_key.message._replace(key=None)),
    ]
    try:
        results = await transport.send(batch)
    finally:
        await transport.aclose()
    assert [type(result) for result in results] == [type(None), UnavailableError, PermanentError]
    assert shop.ready("mail") == 1


async def test_the_doctor_checks_the_queues_of_the_tasks(shop: Shop) -> None:
    async def topology() -> CheckResult:
        addresses = {"mail": CeleryTransport.to(queue="mail")}
        diagnosis = transport_plugin("celery").diagnosis(shop.broker.replace("amqp", "celery", 1), {}, addresses)
        assert diagnosis is not None
        try:
            [check] = [one for one in diagnosis.checks() if one.name == "transport.topology"]
            return await check.ask()
        finally:
            await diagnosis.aclose()

    shop.declare("celery")
    shop.declare("mail", **{"x-queue-type": "quorum"})
    found = await topology()
    assert (found.result, "'mail'" in found.message, "'celery'" in found.message) == ("warn", True, False)


# The inbox of tasks


@pytest.fixture
def app() -> Celery:
    app = Celery("billing", set_as_current=False)
    app.conf.task_eager_propagates = True
    return app


@pytest.fixture
def base(shop: Shop) -> Iterator[type[InboxTask]]:
    engine = create_engine(shop.database.replace("postgresql://", "postgresql+psycopg://"))

    class BillingTask(InboxTask):
        transaction = engine

    yield BillingTask
    engine.dispose()


def bill(connection: Connection, order: dict[str, Any]) -> str:
    connection.execute(text("INSERT INTO invoice (order_id) VALUES (:id)"), {"id": order["id"]})
    if order.get("fails"):
        raise ValueError("no such customer")
    return "billed"


def test_a_duplicate_of_a_task_is_not_called(shop: Shop, app: Celery, base: type[InboxTask]) -> None:
    task = app.task(base=base, name="bill")(bill)
    assert task.apply(args=({"id": 1},), task_id="e1").get() == "billed"
    assert task.apply(args=({"id": 1},), task_id="e1").get() is None
    assert task.apply(args=({"id": 2},), task_id="e2").get() == "billed"
    assert shop.invoices() == [1, 2]


def test_a_task_that_fails_rolls_back_and_may_run_again(shop: Shop, app: Celery, base: type[InboxTask]) -> None:
    task = app.task(base=base, name="bill")(bill)
    with pytest.raises(ValueError, match="no such customer"):
        task.apply(args=({"id": 1, "fails": True},), task_id="e1")
    assert shop.invoices() == []
    assert task.apply(args=({"id": 1},), task_id="e1").get() == "billed"
    assert shop.invoices() == [1]


def test_a_task_that_retries_rolls_back_and_keeps_its_id(shop: Shop, tmp_path: Path) -> None:
    (tmp_path / "retrying.py").write_text(RETRYING)
    shop.place(1)
    shop.relay("celery")
    with shop.consumer([sys.executable, "-m", "celery", "--app", "retrying", "worker"], tmp_path):
        shop.wait_for_invoices(1)
        shop.place(1)
        shop.place(2)
        shop.relay("celery")
        shop.wait_for_invoices(1, 2)
    assert sorted((tmp_path / "attempts").read_text().split()) == ["order-1:0", "order-1:1", "order-2:0", "order-2:1"]


def test_two_tasks_handle_the_same_event_each_once(shop: Shop, app: Celery, base: type[InboxTask]) -> None:
    for name in ("bill", "audit"):
        task = app.task(base=base, name=name)(bill)
        task.apply(args=({"id": 1},), task_id="e1")
        task.apply(args=({"id": 1},), task_id="e1")
    assert shop.invoices() == [1, 1]


def test_a_function_that_opens_a_transaction_is_not_bound_to_the_task(shop: Shop, app: Celery) -> None:
    @contextmanager
    def opening() -> Iterator[psycopg.Connection[Any]]:
        with psycopg.connect(shop.database) as connection:
            yield connection

    class BillingTask(InboxTask):
        transaction = opening
        consumer = "billing"

    def run(connection: psycopg.Connection[Any], order: int) -> None:
        connection.execute("INSERT INTO invoice (order_id) VALUES (%s)", [order])

    app.task(base=BillingTask, name="bill")(run).apply(args=(1,), task_id="e1")
    assert shop.invoices() == [1]
    with psycopg.connect(shop.database) as connection:
        assert not Inbox().admit(connection, "billing", "e1")


def test_tasks_that_cannot_work_say_why(shop: Shop, app: Celery) -> None:
    class AsyncTask(InboxTask):
        transaction = create_async_engine(shop.database.replace("postgresql://", "postgresql+asyncpg://"))

    with pytest.raises(ConfigurationError, match="task bill: set `transaction` of"):
        app.task(base=InboxTask, name="bill")(bill).apply(args=({},), task_id="e1")
    task = app.task(base=AsyncTask, name="mail")(bill)
    with pytest.raises(ConfigurationError, match="task mail: its transaction is async"):
        task.apply(args=({},), task_id="e1")
    with pytest.raises(ConfigurationError, match="task mail was called directly"):
        task({})
