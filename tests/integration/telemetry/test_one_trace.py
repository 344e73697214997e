"""One trace from an HTTP request to the effect, over three processes: producer, relay, consumer."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from opentelemetry.propagate import extract
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from pillarbox import Event, Outbox
from tests.integration.consume.broker import remove_queues
from tests.integration.telemetry.processes import running
from tests.integration.telemetry.traced_process import described
from tests.servers.rabbitmq import RabbitMQServer
from tests.servers.waiting import wait_until

HERE = Path(__file__).parent
TRACE = "0af7651916cd43dd8448eb211c80319c"
CALLER = f"00-{TRACE}-b7ad6b7169203331-01"
STATE = "client=42,vendor@shop=b7ad"


def shop(database: str, provider: TracerProvider) -> Starlette:
    """An application that accepts orders and continues the trace of the client."""
    tracer, outbox = provider.get_tracer("shop"), Outbox()

    def place(request: Request) -> JSONResponse:
        with (
            tracer.start_as_current_span("POST /orders", context=extract(dict(request.headers))),
            psycopg.connect(database) as connection,
        ):
            event = Event(
                "order.placed", {"id": 42}, event_id="placed", correlation_id="visit", headers={"tenant": "x"}
            )
            outbox.record(connection, event)
        return JSONResponse({}, status_code=201)

    return Starlette(routes=[Route("/orders", place, methods=["POST"])])


@pytest.fixture
def queue(rabbitmq_server: RabbitMQServer) -> Iterator[str]:
    name = f"traced-{uuid.uuid4().hex[:12]}"
    yield name
    remove_queues(rabbitmq_server.url(), name)


def rows(database: str, sql: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(database) as connection:
        return connection.execute(sql.encode()).fetchall()


def spans(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch, exporter: InMemorySpanExporter) -> TracerProvider:
    """The provider that the shop has set for its process."""
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr("opentelemetry.trace.get_tracer_provider", lambda: provider)
    return provider


async def test_request_row_header_and_effect_are_one_trace(
    postgres_url: str,
    rabbitmq_server: RabbitMQServer,
    queue: str,
    tmp_path: Path,
    provider: TracerProvider,
    exporter: InMemorySpanExporter,
) -> None:
    with psycopg.connect(postgres_url) as connection:
        connection.execute("CREATE TABLE effect (event_id text, traceparent text, tracestate text)")
    (tmp_path / "billing_app.py").write_text((HERE / "billing_app.py").read_text())
    (tmp_path / "pillarbox.toml").write_text(
        f'[transports.rabbit]\nurl = "{rabbitmq_server.url()}"\n[[transports.rabbit.queues]]\nname = "{queue}"\n'
        f'[destinations.orders]\nrouting_key = "{queue}"\n[[routes]]\nevent_type = "order.placed"\nto = ["orders"]\n'
    )
    sent, handled = tmp_path / "sent", tmp_path / "handled"
    wrapped = str(HERE / "traced_process.py")
    with ExitStack() as started:
        started.enter_context(
            running(
                [wrapped, str(sent), "relay", "--json"],
                cwd=tmp_path,
                variables={"PILLARBOX_STORE": postgres_url, "PILLARBOX_RELAY__LISTEN": "127.0.0.1:0"},
            )
        )
        started.enter_context(
            running(
                [wrapped, str(handled), "consume", "billing_app:consumer", "--listen", "127.0.0.1:0"],
                cwd=tmp_path,
                variables={"DATABASE": postgres_url, "BROKER": rabbitmq_server.url(), "QUEUE": queue},
            )
        )
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(shop(postgres_url, provider)), base_url="http://shop"
        ) as client:
            answer = await client.post("/orders", headers={"traceparent": CALLER, "tracestate": STATE})
        assert answer.status_code == 201
        wait_until(lambda: len(spans(handled)) == 3, bound=40, what="the effect's spans")
        wait_until(lambda: len(spans(sent)) == 1, bound=40, what="the relay's span")

    created, request = map(described, exporter.get_finished_spans())
    [relayed] = spans(sent)
    caused, bill, process = spans(handled)
    everything = (request, created, relayed, process, bill, caused)
    assert [(span["name"], span["kind"], span["parent"]) for span in everything] == [
        ("POST /orders", "INTERNAL", f"0x{CALLER[36:52]}"),
        ("create order.placed", "PRODUCER", request["span_id"]),
        ("send orders", "CLIENT", created["span_id"]),
        ("process order.placed", "CONSUMER", created["span_id"]),
        ("bill", "INTERNAL", process["span_id"]),
        ("create order.billed", "PRODUCER", bill["span_id"]),
    ]
    assert {(span["trace_id"], span["tracestate"]) for span in everything} == {(f"0x{TRACE}", STATE)}
    assert [span["links"] for span in (relayed, process)] == [[created["span_id"]], [created["span_id"]]]

    carried = f"00-{TRACE}-{created['span_id'][2:]}-01"
    [recorded] = rows(postgres_url, "SELECT trace_id, headers FROM outbox_event WHERE event_id = 'placed'")
    assert recorded == (carried, {"tenant": "x", "tracestate": STATE})
    assert rows(postgres_url, "SELECT * FROM effect") == [("placed", carried, STATE)]
    [followed] = rows(postgres_url, "SELECT trace_id, headers FROM outbox_event WHERE event_id = 'billed'")
    assert followed == (f"00-{TRACE}-{caused['span_id'][2:]}-01", {"tracestate": STATE})

    same = {"messaging.message.id": "placed", "messaging.message.conversation_id": "visit"}
    assert same.items() <= created["attributes"].items()
    for span, operation in ((relayed, "send"), (process, "process")):
        about = {"messaging.operation.name": operation, "messaging.operation.type": operation}
        where = {"messaging.system": "rabbitmq", "messaging.destination.name": queue}
        assert (same | about | where).items() <= span["attributes"].items()
