"""Metrics of the store, of consumers and of recording."""

from __future__ import annotations

import pytest

from pillarbox import Event, Outbox
from pillarbox.core.event import EventsRecorded
from pillarbox.inbox.observations import (
    AckFailed,
    ConsumerObservation,
    ConsumerStarted,
    ConsumerStopped,
    ConsumerStopRequested,
    DuplicateSkipped,
    EventProcessed,
    HandlingFailed,
    MessageDeadLettered,
    SourceFailed,
)
from pillarbox.stores.memory import MemoryStore
from pillarbox.telemetry.prometheus import ConsumerMetrics, RecordMetrics, StoreMetrics
from tests.unit.telemetry.exposed import value

EVENT = {"consumer": "billing", "event_id": "e1", "event_type": "order.placed"}


async def test_store_metrics_show_the_last_overview() -> None:
    store, metrics = MemoryStore(), StoreMetrics()
    with store.transaction() as transaction:
        Outbox().record(transaction, Event("order.placed", {}), Event("order.placed", {}))
    seen = await store.admin.inspection.overview()
    metrics.show(seen._replace(oldest=90.0, dead=3), queues={"orders.dlq": 7})
    assert {
        name: value(metrics.registry, f"outbox_{name}")
        for name in ("store_up", "backlog", "oldest_age_seconds", "dead_letters", "relays", "lanes_unowned")
    } == {
        "store_up": 1.0,
        "backlog": 2.0,
        "oldest_age_seconds": 90.0,
        "dead_letters": 3.0,
        "relays": 0.0,
        "lanes_unowned": 64.0,
    }
    assert value(metrics.registry, "outbox_dead_letter_queue_depth", queue="orders.dlq") == 7.0


async def test_an_unavailable_store_has_no_values() -> None:
    metrics = StoreMetrics()
    metrics.show(await MemoryStore().admin.inspection.overview())
    metrics.show(None)
    assert value(metrics.registry, "outbox_store_up") == 0.0
    assert value(metrics.registry, "outbox_backlog") is None
    assert value(metrics.registry, "outbox_oldest_age_seconds") is None


async def test_blocked_keys_are_not_dead_letters() -> None:
    metrics = StoreMetrics()
    metrics.show((await MemoryStore().admin.inspection.overview())._replace(blocked=2))
    assert value(metrics.registry, "outbox_keys_blocked") == 2.0
    assert value(metrics.registry, "outbox_dead_letters") == 0.0


@pytest.mark.parametrize(
    ("observation", "result"),
    [
        (EventProcessed(**EVENT, attempt=1, seconds=0.5), "processed"),
        (DuplicateSkipped(**EVENT), "duplicate"),
        (HandlingFailed(**EVENT, attempt=1, error="no", delay=1.0, counted=True), "retried"),
        (MessageDeadLettered(**EVENT, attempt=7, error="no"), "dead_lettered"),
        (AckFailed(**EVENT, error="gone"), "ack_failed"),
    ],
)
def test_results_are_counted_per_consumer(observation: ConsumerObservation, result: str) -> None:
    metrics = ConsumerMetrics()
    metrics(observation)
    assert value(metrics.registry, "inbox_events_total", consumer="billing", result=result) == 1.0


def test_the_handling_duration_is_observed() -> None:
    metrics = ConsumerMetrics()
    metrics(EventProcessed(**EVENT, attempt=1, seconds=0.5))
    metrics(DuplicateSkipped(**EVENT))
    assert value(metrics.registry, "inbox_handling_duration_seconds_count", consumer="billing") == 1.0
    assert value(metrics.registry, "inbox_handling_duration_seconds_sum", consumer="billing") == 0.5


def test_a_consumer_runs_until_it_has_stopped() -> None:
    metrics = ConsumerMetrics()
    metrics(ConsumerStarted(consumer="billing"))
    metrics(SourceFailed(consumer="billing", error="gone", delay=1.0))
    metrics(ConsumerStopRequested(consumer="billing"))
    assert value(metrics.registry, "inbox_consumers_running", consumer="billing") == 1.0
    metrics(ConsumerStopped(consumer="billing", drained=True))
    assert value(metrics.registry, "inbox_consumers_running", consumer="billing") == 0.0
    assert value(metrics.registry, "inbox_source_failures_total", consumer="billing") == 1.0


def broken(reported: EventsRecorded) -> None:
    raise RuntimeError("this listener is broken")


async def test_recorded_events_are_counted_if_another_listener_fails() -> None:
    store, metrics = MemoryStore(), RecordMetrics()
    outbox = Outbox(observers=[broken, metrics])
    with store.transaction() as transaction:
        outbox.record(transaction, Event("order.placed", {}), Event("order.paid", {}))
        await outbox.arecord(transaction, Event("order.placed", {}))
        outbox.record(transaction)
    assert value(metrics.registry, "outbox_recorded_total", event_type="order.placed") == 2.0
    assert value(metrics.registry, "outbox_recorded_total", event_type="order.paid") == 1.0
