"""The pages of `pillarbox consume --listen`."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.integration.cli.running import fresh_pillarbox
from tests.integration.telemetry.processes import Pages, running
from tests.servers.ports import free_port
from tests.servers.waiting import wait_until

APP = """
from pillarbox import Consumer
from pillarbox.core.source import Incoming
from pillarbox.stores.memory import MemoryStore
from pillarbox.transports.memory_source import MemoryQueue, MemorySource

queue = MemoryQueue()
consumer = Consumer(MemorySource(queue), name="billing", transaction=MemoryStore().transaction)

@consumer.on("order.placed")
def bill(transaction, event):
    if event.event_id == "bad":
        raise ValueError("out of paper")

for event_id in ("one", "two", "one", "bad"):
    queue.put(Incoming(event_id=event_id, event_type="order.placed", body=b"{}", content_type="application/json"))
"""

AWAY = f"""
from pillarbox import Consumer
from pillarbox.stores.memory import MemoryStore
from pillarbox.transports.rabbitmq import RabbitMQSource

source = RabbitMQSource("amqp://app:canary-password@127.0.0.1:{free_port()}/", queue="q")
consumer = Consumer(source, name="billing", transaction=MemoryStore().transaction)

@consumer.on("*")
def bill(transaction, event): ...
"""


@pytest.fixture
def pages(tmp_path: Path) -> Iterator[Pages]:
    (tmp_path / "shop.py").write_text(APP)
    with running(
        ["-m", "pillarbox", "consume", "shop:consumer", "--listen", "127.0.0.1:0"], cwd=tmp_path, variables={}
    ) as pages:
        yield pages


def test_results_of_events_are_counted(pages: Pages) -> None:
    pages.until("inbox_events_total", 2.0, consumer="billing", result="processed")
    pages.until("inbox_events_total", 1.0, consumer="billing", result="duplicate")
    pages.until("inbox_handling_duration_seconds_count", 2.0, consumer="billing")
    assert pages.value("inbox_consumers_running", consumer="billing") == 1.0


def test_a_running_consumer_is_healthy(pages: Pages) -> None:
    pages.until("inbox_consumers_running", 1.0, consumer="billing")
    assert [pages.get(path).status_code for path in ("/livez", "/readyz", "/health", "/metrics")] == [200] * 4
    assert pages.health()[1] == {"status": "UP", "consumer": "billing", "last_source_error": None}


def test_the_port_is_closed_when_the_consumer_has_drained(pages: Pages) -> None:
    pages.until("inbox_consumers_running", 1.0, consumer="billing")
    assert pages.stop() == 0
    with pytest.raises(httpx.ConnectError):
        pages.get("/livez")


def test_an_unavailable_broker_is_reported_and_the_consumer_stays_alive(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(AWAY)
    command = ["-m", "pillarbox", "consume", "shop:consumer", "--listen", "127.0.0.1:0"]
    with running(command, cwd=tmp_path, variables={}) as pages:
        wait_until(lambda: bool(pages.health()[1]["last_source_error"]), bound=90, what="the source has failed")
        assert [pages.get(path).status_code for path in ("/livez", "/readyz", "/health")] == [200] * 3
        assert (pages.value("inbox_source_failures_total", consumer="billing") or 0) >= 1
        assert "canary-password" not in pages.get("/health").text + pages.log_text()


def test_an_invalid_address_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(APP)
    done = fresh_pillarbox("consume", "shop:consumer", "--listen", "9465", cwd=tmp_path)
    assert done.returncode == 2
    assert "write host:port, for example 127.0.0.1:9464" in done.stderr
