"""An event that another one caused has its correlation and causation ids."""

from pillarbox import Event
from pillarbox.testing.conformance.transports import outgoing
from pillarbox.transports.handlers import Handlers, ReceivedEvent

CAUSE = Event("order.placed", {}, event_id="order", correlation_id="visit", trace_id="trace")


def test_a_caused_event_has_correlation_and_causation_ids() -> None:
    caused = Event("invoice.sent", {"n": 1}, event_id="invoice", key="k").caused_by(CAUSE)
    assert (caused.causation_id, caused.correlation_id, caused.trace_id) == ("order", "visit", "trace")
    assert (caused.event_type, caused.payload, caused.event_id, caused.key) == (
        "invoice.sent",
        {"n": 1},
        "invoice",
        "k",
    )


def test_the_first_event_of_a_chain_is_the_correlation_id() -> None:
    first = Event("order.placed", {}, event_id="first")
    second = Event("invoice.sent", {}, event_id="second").caused_by(first)
    third = Event("invoice.paid", {}).caused_by(second)
    assert (second.causation_id, second.correlation_id) == ("first", "first")
    assert (third.causation_id, third.correlation_id) == ("second", "first")
    assert third.trace_id is None


def test_ids_set_on_the_event_are_kept() -> None:
    said = Event("invoice.sent", {}, correlation_id="mine", causation_id="my cause", trace_id="my trace")
    assert said.caused_by(CAUSE) == said


def test_a_received_event_can_be_the_cause() -> None:
    received = ReceivedEvent(outgoing("e1", Handlers().to("h")))
    assert Event("invoice.sent", {}).caused_by(received).causation_id == "e1"
