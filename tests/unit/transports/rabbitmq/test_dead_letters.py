"""What the headers of a dead letter say."""

from datetime import UTC, datetime
from typing import Any

import pytest
from pika import BasicProperties

from pillarbox.admin.broker_dead_letters import BrokerDeadLetter
from pillarbox.transports.rabbitmq.dead_letters import dead_letter_of
from pillarbox.transports.rabbitmq.properties import ReceivedMessage, ReceivedProperties

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
OURS = {
    "pillarbox-attempts": 7,
    "pillarbox-deferrals": 2,
    "pillarbox-reason": "ValueError: no address",
    "pillarbox-last-failed-at": "2026-11-30T12:00:00.000Z",
    "pillarbox-queue": "orders",
}
EXPIRED = {"queue": "orders", "reason": "expired", "count": 3, "time": NOON, "exchange": "", "routing-keys": ["orders"]}


def dead_letter(headers: dict[str, Any], *, redelivered: bool = False, **properties: Any) -> BrokerDeadLetter:
    given = BasicProperties(headers=headers, **{"message_id": "e1", "type": "order.placed", **properties})
    return dead_letter_of(
        ReceivedMessage(1, "orders.dlq", redelivered, ReceivedProperties(b"".join(given.encode())), b"four")
    )


def test_a_message_that_a_consumer_dead_lettered() -> None:
    found = dead_letter(OURS)
    assert (found.queue, found.event_id, found.event_type, found.size) == ("orders.dlq", "e1", "order.placed", 4)
    assert (found.reason, found.attempts, found.dead_lettered_at) == ("ValueError: no address", 7, NOON)
    assert found.original_queue == "orders"


def test_a_message_that_the_broker_dead_lettered() -> None:
    found = dead_letter({"x-death": [EXPIRED]})
    assert (found.reason, found.attempts, found.dead_lettered_at, found.original_queue) == (
        "expired",
        3,
        NOON,
        "orders",
    )


def test_the_reasons_of_broker_and_consumer_are_joined() -> None:
    found = dead_letter({**OURS, "pillarbox-queue": "elsewhere", "x-death": [EXPIRED]})
    assert (found.reason, found.attempts) == ("expired; before that: ValueError: no address", 7)
    assert found.original_queue == "orders"


def test_dead_lettering_in_the_dead_letter_queue_itself_does_not_count() -> None:
    here = {**EXPIRED, "queue": "orders.dlq"}
    assert dead_letter({"x-death": [here, EXPIRED]}).original_queue == "orders"
    assert dead_letter({"x-death": [here]}).original_queue is None


def test_id_and_type_of_a_cloudevent_are_shown() -> None:
    attributes = {"cloudEvents_specversion": "1.0", "cloudEvents_id": "c1", "cloudEvents_type": "shop.order"}
    found = dead_letter(attributes, message_id=None, type=None)
    assert (found.event_id, found.event_type, found.size) == ("c1", "shop.order", 4)


def test_the_type_may_be_in_a_header() -> None:
    assert dead_letter({"eventType": "order.moved"}, type=None).event_type == "order.moved"


@pytest.mark.parametrize(
    ("headers", "redelivered", "count"), [({}, False, 0), ({}, True, 1), ({"x-delivery-count": 12}, True, 12)]
)
def test_the_delivery_count_is_that_of_the_broker(headers: dict[str, Any], redelivered: bool, count: int) -> None:
    assert dead_letter(headers, redelivered=redelivered).delivery_count == count


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"x-death": "often"},
        {"x-death": ["once", {"reason": "expired"}, {"queue": 7, "time": "noon", "count": "many", "reason": None}]},
        {"pillarbox-attempts": "many", "pillarbox-last-failed-at": "yesterday", "pillarbox-reason": [1]},
        {"pillarbox-last-failed-at": "2026-11-30T12:00:00"},
    ],
)
def test_any_headers_can_be_listed(headers: dict[str, Any]) -> None:
    found = dead_letter(headers, message_id=None, type=None)
    assert (found.event_id, found.event_type, found.attempts) == (None, None, 0)
    assert (found.reason, found.dead_lettered_at, found.original_queue) == (None, None, None)
