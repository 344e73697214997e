"""The depths of dead-letter queues on the pages of a relay, and how long they are kept without a broker."""

import asyncio
from pathlib import Path

import pytest

from pillarbox.core.clock import SystemClock
from pillarbox.ops.monitor.queues import MAX_AGE, QueueDepths
from pillarbox.ops.settings import Settings
from pillarbox.testing.waiting import eventually
from tests.integration.rabbitmq.consumer import channel
from tests.integration.rabbitmq.proxy import Proxy


class ByHand(SystemClock):
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.at = 1000.0

    def monotonic(self) -> float:
        return self.at


def watching(proxied: str, queue: str, folder: Path, clock: ByHand) -> QueueDepths:
    file = folder / "pillarbox.toml"
    dead = f"dead_letter = {{ exchange = '', queue = '{queue}' }}"
    file.write_text(f"[transports.rabbit]\nurl = '{proxied}'\nqueues = [{{ name = 'work', {dead} }}]\n")
    settings = Settings.load(file, {})
    return QueueDepths(settings, destinations=set, clock=clock)


async def test_a_depth_is_kept_for_a_while_after_the_broker_stopped(
    url: str, proxy: Proxy, proxied: str, queue: str, tmp_path: Path
) -> None:
    with channel(url) as broker:
        broker.queue_declare(queue, durable=True)
        broker.basic_publish("", queue, b"")
    clock = ByHand()
    depths = watching(proxied, queue, tmp_path, clock)
    assert depths.known == {}
    await depths.query()
    assert depths.known == {queue: 1}
    await proxy.cut()
    clock.at += MAX_AGE - 1
    await depths.query()
    assert depths.known == {queue: 1}
    clock.at += 1
    assert depths.known == {}


async def test_a_deleted_queue_has_no_depth_any_more(url: str, proxied: str, queue: str, tmp_path: Path) -> None:
    depths = watching(proxied, queue, tmp_path, ByHand())
    with channel(url) as broker:
        broker.queue_declare(queue, durable=True)
        await depths.query()
        broker.queue_delete(queue)
    assert depths.known == {queue: 0}
    await depths.query()
    assert depths.known == {}


async def test_depths_are_read_in_the_background(url: str, proxied: str, queue: str, tmp_path: Path) -> None:
    with channel(url) as broker:
        broker.queue_declare(queue, durable=True)
    depths = watching(proxied, queue, tmp_path, ByHand())

    async def known() -> bool:
        return depths.known == {queue: 0}

    async with depths.polling():
        await eventually(known)


async def test_an_event_type_whose_queue_has_too_long_a_name_hides_no_other_depth(url: str, queue: str) -> None:
    with channel(url) as broker:
        broker.queue_declare(f"{queue}.dlq", durable=True)
    settings = Settings.of({"transports": {"rabbit": {"url": url}}}, "pillarbox.toml", {})
    depths = QueueDepths(settings, destinations=lambda: {"a" * 255, queue})
    try:
        await depths.query()
        assert depths.known == {f"{queue}.dlq": 0}
    finally:
        with channel(url) as broker:
            broker.queue_delete(f"{queue}.dlq")


async def test_an_error_of_an_adapter_does_not_end_the_reading(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    answers = iter([OSError("no"), None])
    read_again = asyncio.Event()

    async def query(_: QueueDepths) -> None:
        if (error := next(answers)) is not None:
            raise error
        read_again.set()
        await asyncio.Event().wait()

    class Hasty(ByHand):
        async def sleep(self, seconds: float) -> None:
            return

    monkeypatch.setattr(QueueDepths, "query", query)
    async with QueueDepths(Settings.of({}, "", {}), destinations=set, clock=Hasty()).polling():
        await asyncio.wait_for(read_again.wait(), 30)
    assert [record.getMessage() for record in caplog.records] == [
        "the depths of dead-letter queues cannot be read: OSError"
    ]
