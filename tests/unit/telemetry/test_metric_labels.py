"""The number of series is bounded for any events, and the exposed text can be parsed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from pillarbox import Event
from pillarbox.core.event import EventsRecorded
from pillarbox.core.observations import EventDelivered, RelayStateChanged
from pillarbox.telemetry.prometheus import RecordMetrics, RelayMetrics
from pillarbox.telemetry.prometheus.client import MOST_DESTINATIONS, MOST_EVENT_TYPES, OTHER
from tests.unit.relay.messages import message
from tests.unit.telemetry.exposed import value

ANY_TEXT = st.text(st.characters())  # lone surrogates and all controls included


def delivered(destination: str, event_type: str) -> EventDelivered:
    return EventDelivered(relay="r", message=message(event_type=event_type), destination=destination, seconds=0.1)


def test_event_types_beyond_the_bound_are_counted_together() -> None:
    listener = RelayMetrics()
    for number in range(MOST_EVENT_TYPES + 10):
        listener(delivered("orders", f"type.{number}"))
    labels = {"destination": "orders"}
    assert value(listener.registry, "outbox_published_total", **labels, event_type="type.0") == 1.0
    assert value(listener.registry, "outbox_published_total", **labels, event_type=OTHER) == 10.0


def test_destinations_beyond_the_bound_are_counted_together() -> None:
    listener = RelayMetrics()
    for number in range(MOST_DESTINATIONS + 3):
        listener(delivered(f"destination-{number}", "order.placed"))
    labels = {"destination": OTHER, "event_type": "order.placed"}
    assert value(listener.registry, "outbox_published_total", **labels) == 3.0


def test_beyond_the_bound_no_series_is_added() -> None:
    listener = RelayMetrics()
    for number in range(MOST_EVENT_TYPES + 1):
        listener(delivered("orders", f"type.{number}"))
    series = len(generate_latest(listener.registry).splitlines())
    for number in range(10 * MOST_EVENT_TYPES):
        listener(delivered("orders", f"further type.{number}"))
    assert len(generate_latest(listener.registry).splitlines()) == series


def test_recorded_types_beyond_the_bound_are_counted_together() -> None:
    metrics = RecordMetrics()
    metrics(EventsRecorded(events=tuple(Event(f"type.{number}", {}) for number in range(MOST_EVENT_TYPES + 4))))
    assert value(metrics.registry, "outbox_recorded_total", event_type=OTHER) == 4.0
    assert value(metrics.registry, "outbox_recorded_total", event_type="type.1") == 1.0


@given(ANY_TEXT, ANY_TEXT)
def test_any_label_text_can_be_exposed_and_parsed(destination: str, event_type: str) -> None:
    listener = RelayMetrics()
    listener(delivered(destination, event_type))
    listener(RelayStateChanged(relay="r", lanes=1, in_flight=0, breakers={destination: "open"}, rates={}))
    shown = generate_latest(listener.registry).decode()
    published = {one.name: one for one in text_string_to_metric_families(shown)}["outbox_published"]
    assert [sample.value for sample in published.samples if sample.name.endswith("_total")] == [1.0]
