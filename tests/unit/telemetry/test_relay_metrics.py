"""Metrics of a relay, by destination and type, summed over the relays of a process."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import generate_latest

from pillarbox.core.message import Message
from pillarbox.core.observations import (
    BatchDelivered,
    BatchFetched,
    BatchSettled,
    EventDelivered,
    LanesAcquired,
    LanesLost,
    LeaseLost,
    Observation,
    Pruned,
    RelayStalled,
    RelayStallEnded,
    RelayStarted,
    RelayStateChanged,
    RelayStopped,
    StoreFailed,
)
from pillarbox.telemetry.prometheus import RelayMetrics
from tests.unit.relay.messages import message
from tests.unit.telemetry.examples import (
    DEAD_LETTERED,
    DELIVERED,
    EXAMPLES,
    NACKED,
    NOON,
    ORDER,
    RETRIED,
    SKIPPED,
    Noon,
)
from tests.unit.telemetry.exposed import value

WAY = {"destination": "orders", "event_type": "order.placed"}


def metrics_after(*observations: Observation) -> RelayMetrics:
    listener = RelayMetrics(clock=Noon())
    for observation in observations:
        listener(observation)
    return listener


@pytest.mark.parametrize(
    ("observation", "counted"),
    [
        (DELIVERED, ["outbox_published_total"]),
        (RETRIED, ["outbox_failed_total", "outbox_retries_total"]),
        (NACKED, ["outbox_failed_total", "outbox_retries_total"]),
        (DEAD_LETTERED, ["outbox_failed_total", "outbox_dead_lettered_total"]),
    ],
)
def test_events_are_counted_by_destination_and_type(observation: Observation, counted: list[str]) -> None:
    registry = metrics_after(observation, observation).registry
    names = ["outbox_published_total", "outbox_failed_total", "outbox_retries_total", "outbox_dead_lettered_total"]
    assert {name: value(registry, name, **WAY) for name in names} == {
        name: 2.0 if name in counted else 0.0 for name in names
    }


@pytest.mark.parametrize(
    ("observation", "name", "count"),
    [
        (LanesLost(relay="r", lanes=(1, 2)), "outbox_fenced_settlements_total", 1.0),
        (LanesAcquired(relay="r", lanes=(1, 2, 3), crashed=(2, 3)), "outbox_takeovers_total", 2.0),
        (LanesAcquired(relay="r", lanes=(1, 2, 3)), "outbox_takeovers_total", 0.0),
        (LeaseLost(relay="r", reason="late"), "outbox_leases_lost_total", 1.0),
        (StoreFailed(relay="r", error="gone", delay=1.0), "outbox_store_failures_total", 1.0),
        (Pruned(relay="r", count=12), "outbox_pruned_total", 12.0),
    ],
)
def test_failures_of_a_relay_are_counted(observation: Observation, name: str, count: float) -> None:
    assert value(metrics_after(observation).registry, name) == count


def test_duplicates_are_counted_by_where_they_were_found() -> None:
    settled = BatchSettled(relay="r", delivered=5, retried=0, dead=0, duplicates=3, seconds=0.01)
    registry = metrics_after(SKIPPED, settled).registry
    assert value(registry, "outbox_duplicates_total", found_in="ledger") == 1.0
    assert value(registry, "outbox_duplicates_total", found_in="table") == 3.0


def test_durations_and_sizes_are_observed() -> None:
    read = BatchFetched(relay="r", messages=(ORDER, ORDER), seconds=0.002)
    settled = BatchSettled(relay="r", delivered=2, retried=0, dead=0, duplicates=0, seconds=0.01)
    registry = metrics_after(read, DELIVERED, settled).registry
    assert value(registry, "outbox_batch_size_sum") == 2.0
    assert value(registry, "outbox_fetch_duration_seconds_sum") == 0.002
    assert value(registry, "outbox_settle_duration_seconds_sum") == 0.01
    assert value(registry, "outbox_publish_duration_seconds_sum", destination="orders") == 0.25


@pytest.mark.parametrize(
    ("recorded", "due", "tried", "lag"),
    [
        (-90, None, 0, 90.0),
        (-90, -30, 0, 30.0),  # scheduled: the lag counts from when it was due
        (-90, -30, 1, 90.0),  # a retry: the lag counts from the recording
        (5, None, 0, 0.0),  # the database's clock is ahead
    ],
)
def test_the_lag_is_the_delay_after_an_event_was_due(recorded: int, due: int | None, tried: int, lag: float) -> None:
    waited = message(
        recorded_at=NOON + timedelta(seconds=recorded),
        available_at=None if due is None else NOON + timedelta(seconds=due),
        attempts=tried,
    )
    registry = metrics_after(EventDelivered(relay="r", message=waited, destination="orders", seconds=0.1)).registry
    assert value(registry, "outbox_lag_seconds_sum", destination="orders") == lag


SECONDS = st.integers(0, 10**6).map(lambda number: number / 32)  # exact in binary
MESSAGES = st.builds(
    lambda event_type, age, delayed, tried: message(
        event_type=event_type,
        recorded_at=NOON - timedelta(seconds=age),
        available_at=NOON - timedelta(seconds=age / 2) if delayed else None,
        attempts=tried,
    ),
    st.sampled_from(("order.placed", "order.paid", "mail")),
    SECONDS,
    st.booleans(),
    st.integers(0, 1),
)


@given(st.lists(st.tuples(st.sampled_from(("orders", "mail")), st.lists(MESSAGES, min_size=1), SECONDS), max_size=5))
def test_a_batch_counts_like_its_events(batches: list[tuple[str, list[Message], float]]) -> None:
    by_batch, by_event = RelayMetrics(clock=Noon()), RelayMetrics(clock=Noon())
    for destination, messages, seconds in batches:
        batch = BatchDelivered(relay="r", destination=destination, messages=tuple(messages), seconds=seconds)
        by_batch.delivered(batch)
        for event in batch.events():
            by_event(event)
    shown, expected = (
        [line for line in generate_latest(one.registry).decode().splitlines() if "_created" not in line]
        for one in (by_batch, by_event)
    )
    assert shown == expected


def test_a_batch_is_counted_by_type() -> None:
    listener = RelayMetrics(clock=Noon())
    messages = (ORDER, ORDER, message(event_type="mail", recorded_at=NOON))
    listener.delivered(BatchDelivered(relay="r", destination="orders", messages=messages, seconds=0.25))
    assert value(listener.registry, "outbox_published_total", **WAY) == 2.0
    assert value(listener.registry, "outbox_published_total", destination="orders", event_type="mail") == 1.0
    assert value(listener.registry, "outbox_publish_duration_seconds_sum", destination="orders") == 0.75
    assert value(listener.registry, "outbox_publish_duration_seconds_bucket", destination="orders", le="0.25") == 3.0
    assert value(listener.registry, "outbox_lag_seconds_count", destination="orders") == 3.0


def held(relay: str, **changes: object) -> RelayStateChanged:
    usual: dict[str, object] = {
        "lanes": 32,
        "in_flight": 5,
        "breakers": {"orders": "closed"},
        "rates": {"orders": 250.0},
    }
    return RelayStateChanged(relay=relay, **(usual | changes))  # type: ignore[arg-type]


def test_gauges_are_summed_over_the_relays_of_a_process() -> None:
    one, two = held("a"), held("b", breakers={"orders": "open", "mail": "half-open"}, rates={})
    registry = metrics_after(RelayStarted(relay="a"), RelayStarted(relay="b"), one, two).registry
    assert value(registry, "outbox_relays_running") == 2.0
    assert value(registry, "outbox_lanes_owned") == 64.0
    assert value(registry, "outbox_in_flight") == 10.0
    assert value(registry, "outbox_breaker_state", destination="orders") == 2.0
    assert value(registry, "outbox_breaker_state", destination="mail") == 1.0
    assert value(registry, "outbox_rate_limit", destination="orders") == 250.0


def test_paused_destinations_are_shown() -> None:
    registry = metrics_after(held("a", paused=frozenset({"mail"}))).registry
    assert value(registry, "outbox_destination_paused", destination="orders") == 0.0
    assert value(registry, "outbox_destination_paused", destination="mail") == 1.0
    registry = metrics_after(held("a", paused=frozenset({"*"}))).registry
    assert value(registry, "outbox_destination_paused", destination="orders") == 1.0
    assert value(registry, "outbox_destination_paused", destination="*") == 1.0


def test_the_process_is_stalled_while_one_of_its_relays_is() -> None:
    def stalled(relay: str) -> RelayStalled:
        return RelayStalled(relay=relay, stage="fetch", reason="no answer", seconds=40.0)

    listener = metrics_after(RelayStarted(relay="a"), RelayStarted(relay="b"))
    shown = [value(listener.registry, "outbox_relay_stalled")]
    for observation in (
        stalled("a"),
        stalled("b"),
        RelayStallEnded(relay="a", stage="fetch", seconds=50.0),
        RelayStopped(relay="b", drained=False),
    ):
        listener(observation)
        shown.append(value(listener.registry, "outbox_relay_stalled"))
    assert shown == [0.0, 1.0, 1.0, 1.0, 0.0]


def test_a_stopped_relay_has_no_values() -> None:
    registry = metrics_after(RelayStarted(relay="a"), held("a"), RelayStopped(relay="a", drained=True)).registry
    assert value(registry, "outbox_relays_running") == 0.0
    assert value(registry, "outbox_lanes_owned") == 0.0
    assert value(registry, "outbox_breaker_state", destination="orders") is None


def test_a_process_without_a_relay_has_metrics_too() -> None:
    registry = RelayMetrics().registry
    assert value(registry, "outbox_relays_running") == 0.0
    assert value(registry, "outbox_takeovers_total") == 0.0


def test_two_listeners_do_not_collide() -> None:
    first, second = metrics_after(DELIVERED), metrics_after(DELIVERED)
    assert first.registry is not second.registry
    assert value(second.registry, "outbox_published_total", **WAY) == 1.0


@pytest.mark.parametrize("observation", EXAMPLES, ids=lambda one: type(one).__name__)
def test_every_observation_is_accepted(observation: Observation) -> None:
    metrics_after(observation)
