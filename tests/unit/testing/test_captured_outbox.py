"""The captured outbox in memory: what counts as recorded, and what its assertions say."""

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from unittest.mock import ANY
from uuid import UUID

import pytest

from pillarbox import ConfigurationError, Event, EventTypes, Outbox, RecordError
from pillarbox.stores.memory import MemoryTransaction
from pillarbox.testing import CapturedOutbox

outbox = Outbox()
"""As in an application: made when its module is imported, long before a test begins."""


class Undo(Exception):
    pass


@pytest.fixture
def captured() -> Iterator[CapturedOutbox]:
    with CapturedOutbox() as captured:
        yield captured


def place_order(connection: MemoryTransaction, number: int) -> None:
    outbox.record(connection, Event("order.placed", {"id": number, "items": [{"sku": "A1"}]}, key=f"order:{number}"))


def test_a_committed_event_is_recorded(captured: CapturedOutbox) -> None:
    with captured.transaction() as connection:
        place_order(connection, 42)
        captured.assert_not_recorded()  # not committed yet
    event = captured.assert_recorded("order.placed", payload__id=42, payload__items__0__sku="A1", key="order:42")
    assert event.payload == {"id": 42, "items": [{"sku": "A1"}]}


def test_a_rolled_back_event_is_not_recorded_and_the_failure_says_so(captured: CapturedOutbox) -> None:
    with pytest.raises(Undo), captured.transaction() as connection:
        place_order(connection, 42)
        raise Undo
    captured.assert_not_recorded("order.placed")
    with pytest.raises(AssertionError, match=r"no event was recorded\nrolled back, .*: 1 \(order\.placed\)"):
        captured.assert_recorded("order.placed")


def test_a_rolled_back_savepoint_discards_only_its_own_events(captured: CapturedOutbox) -> None:
    with captured.transaction() as connection:
        place_order(connection, 1)
        with pytest.raises(Undo), connection.savepoint():
            place_order(connection, 2)
            raise Undo
        place_order(connection, 3)
    assert [event.payload["id"] for event in captured.events] == [1, 3]


def test_a_refused_event_is_not_recorded(captured: CapturedOutbox) -> None:
    with pytest.raises(RecordError), captured.transaction() as connection:
        outbox.record(connection, Event("order.placed", {"at": object()}))
    captured.assert_not_recorded()


def test_a_duplicate_that_is_ignored_counts_once(captured: CapturedOutbox) -> None:
    lenient = Outbox(duplicate="ignore")
    for _ in range(2):
        with captured.transaction() as connection:
            lenient.record(connection, Event("order.placed", {}, event_id="same"))
    captured.assert_recorded("order.placed", count=1, event_id="same")


def test_events_are_recorded_from_any_thread_and_from_coroutines(captured: CapturedOutbox) -> None:
    def in_thread() -> None:
        with captured.transaction() as connection:
            place_order(connection, 1)

    async def in_coroutine() -> None:
        with captured.transaction() as connection:
            await outbox.arecord(connection, Event("order.paid", {"id": 1}))

    thread = threading.Thread(target=in_thread)
    thread.start()
    thread.join()
    asyncio.run(in_coroutine())
    assert captured.events.event_types == ["order.placed", "order.paid"]


def test_nothing_is_captured_before_and_after_the_block() -> None:
    captured = CapturedOutbox()
    captured.record(Event("too.early", {}))
    with captured:
        captured.record(Event("in.time", {}))
    captured.record(Event("too.late", {}))
    assert captured.events.event_types == ["in.time"]


def test_two_captures_do_not_disturb_each_other() -> None:
    with CapturedOutbox() as outer, CapturedOutbox() as inner:
        inner.record(Event("inner", {}))
        outer.record(Event("outer", {}))
        assert inner.events.event_types == ["inner"]
        assert outer.events.event_types == ["outer"]


def test_the_values_of_the_registry_are_recorded(captured: CapturedOutbox) -> None:
    types = EventTypes()
    types.register("order.placed", version=3, destination="billing")
    with captured.transaction() as connection:
        Outbox(registry=types).record(connection, Event("order.placed", {}))
    captured.assert_recorded("order.placed", schema_version=3, destination="billing")


@dataclass
class Money:
    amount: Decimal
    currency: str


@pytest.mark.parametrize(
    "value",
    [
        UUID("01a1ee75-3156-77f3-b9e4-5862974a8f2b"),
        Decimal("9.50"),
        date(2026, 11, 18),
        datetime(2026, 11, 18, tzinfo=UTC),
        Money(Decimal(1), "EUR"),
        [Money(Decimal(1), "EUR")],
        {"nested": UUID("01a1ee75-3156-77f3-b9e4-5862974a8f2b")},
        (1, 2),
        None,
        "",
        0,
    ],
    ids=repr,
)
def test_an_expected_value_is_compared_as_a_consumer_receives_it(captured: CapturedOutbox, value: object) -> None:
    captured.record(Event("order.placed", {"value": value}))
    captured.assert_recorded("order.placed", payload__value=value)
    captured.assert_recorded("order.placed", payload={"value": value})
    captured.assert_not_recorded("order.placed", payload__value="another")


def test_values_that_compare_equal_to_many_are_accepted(captured: CapturedOutbox) -> None:
    captured.record(Event("order.placed", {"id": 7, "total": 0.1 + 0.2}, headers={"tenant": "acme"}))
    captured.assert_recorded("order.placed", payload={"id": ANY, "total": pytest.approx(0.3)}, headers__tenant="acme")


def test_keys_with_double_underscores_and_bytes_are_reached(captured: CapturedOutbox) -> None:
    captured.record(Event("odd", {"a__b": {"c": 1}, "a": {"b": 2}}), Event("raw", b"\x00\xff"))
    captured.assert_recorded("odd", payload__a__b__c=1)
    captured.assert_recorded("raw", payload=b"\x00\xff")
    captured.assert_not_recorded("raw", payload__id=1)


def test_a_missing_field_does_not_equal_none(captured: CapturedOutbox) -> None:
    captured.record(Event("order.placed", {"id": 7}))
    captured.assert_not_recorded("order.placed", payload__note=None)
    captured.assert_not_recorded("order.placed", payload__note=ANY)


def test_a_failure_shows_the_nearest_events_and_their_differences(captured: CapturedOutbox) -> None:
    captured.record(
        Event("order.paid", {"id": 42}),
        Event("order.placed", {"id": 43, "items": [{"sku": "A1"}], "note": "x"}, key="order:43"),
        Event("order.placed", {"id": 44}),
    )
    with pytest.raises(AssertionError) as failed:
        captured.assert_recorded("order.placed", key="order:43", payload={"id": 42, "items": [{"sku": "B2"}]})
    assert str(failed.value).splitlines() == [
        "no recorded event matches 'order.placed' with key='order:43', payload={'id': 42, 'items': [{'sku': 'B2'}]}",
        "nearest of 3 recorded:",
        "  #2 order.placed {'id': 43, 'items': [{'sku': 'A1'}], 'note': 'x'}, key='order:43'",
        "       payload.id: expected 42, recorded 43",
        "       payload.items[0].sku: expected 'B2', recorded 'A1'",
        "       payload.note: expected <missing>, recorded 'x'",
        "  #3 order.placed {'id': 44}",
        "       key: expected 'order:43', recorded None",
        "       payload.id: expected 42, recorded 44",
        "       payload.items: expected [{'sku': 'B2'}], recorded <missing>",
    ]


def test_a_failure_shows_the_nearest_type(captured: CapturedOutbox) -> None:
    captured.record(Event("invoice.sent", {}), Event("order.placed", {}))
    with pytest.raises(AssertionError) as failed:
        captured.assert_recorded("order.plcaed")
    assert "\n  #2 order.placed {}\n       event_type: expected 'order.plcaed', recorded 'order.placed'\n" in str(
        failed.value
    )


def test_a_large_payload_does_not_flood_the_failure(captured: CapturedOutbox) -> None:
    captured.record(Event("order.placed", {"text": "x" * 100_000}))
    with pytest.raises(AssertionError) as failed:
        captured.assert_recorded("order.placed", payload__text="y" * 100_000)
    assert len(str(failed.value)) < 2000


def test_counts_and_order_are_asserted(captured: CapturedOutbox) -> None:
    captured.record(Event("a", {"n": 1}), Event("b", {}), Event("a", {"n": 2}), Event("c", {}))
    captured.assert_recorded("a", count=2)
    captured.assert_recorded("a", count=1, payload__n=2)
    captured.assert_recorded_in_order("a", "b", "c")
    captured.assert_recorded_in_order("a", "a")
    with pytest.raises(AssertionError, match=r"expected 1 × 'a', recorded 2"):
        captured.assert_recorded("a", count=1)
    with pytest.raises(AssertionError, match=r"no 'b' was recorded after 'c'; recorded in this order: a, b, a, c"):
        captured.assert_recorded_in_order("c", "b")
    with pytest.raises(AssertionError, match=r"no 'b' was recorded after 'b'"):
        captured.assert_recorded_in_order("b", "b")
    with pytest.raises(AssertionError, match=r"expected no 'a' with payload.n=1, recorded 1:\n  a \{'n': 1\}"):
        captured.assert_not_recorded("a", payload__n=1)
    with pytest.raises(AssertionError, match="expected no event, recorded 4:"):
        captured.assert_not_recorded()


def test_a_wrong_expectation_is_refused(captured: CapturedOutbox) -> None:
    with pytest.raises(ConfigurationError, match=r"an event has no field 'paylod'; did you mean 'payload'\?"):
        captured.assert_recorded("order.placed", paylod__id=1)
    with pytest.raises(ConfigurationError, match="use one of event_type, payload"):
        captured.assert_not_recorded("order.placed", zzz=1)
    with pytest.raises(ConfigurationError, match="count=0 must be 1 or more"):
        captured.assert_recorded("order.placed", count=0)
