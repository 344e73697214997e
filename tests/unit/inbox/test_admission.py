"""Names of consumers and ids of events are validated before anything is written."""

from typing import Any

import pytest

from pillarbox import ConfigurationError, Event, Inbox, InboxError
from pillarbox.stores.memory import MemoryStore
from pillarbox.testing.conformance.transports import outgoing
from pillarbox.transports.handlers import Handlers, ReceivedEvent

inbox = Inbox()


@pytest.mark.parametrize(
    ("consumer", "reason"),
    [
        ("", "consumer is empty"),
        (None, "consumer must be text, not NoneType"),
        (7, "consumer must be text, not int"),
        ("bill\ning", r"control character U\+000A"),
        ("b\ud800", "lone surrogate"),
        ("é" * 128, "256 bytes of UTF-8; the limit is 255"),
    ],
)
async def test_an_invalid_consumer_name_is_rejected_by_every_method(consumer: Any, reason: str) -> None:
    with MemoryStore().transaction() as transaction:
        with pytest.raises(ConfigurationError, match=reason):
            inbox.admit(transaction, consumer, "e1")
        with pytest.raises(ConfigurationError, match=reason):
            await inbox.aadmit(transaction, consumer, "e1")
    with pytest.raises(ConfigurationError, match=reason):
        inbox.once(consumer)


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        ("", "event_id is empty"),
        (None, "NoneType has no event_id"),
        (7, "int has no event_id"),
        ("e\x00", r"control character U\+0000"),
        ("e" * 256, "256 bytes of UTF-8; the limit is 255"),
    ],
)
def test_an_event_without_a_valid_id_is_rejected(event: Any, reason: str) -> None:
    with MemoryStore().transaction() as transaction, pytest.raises(InboxError, match=reason):
        inbox.admit(transaction, "billing", event)


def test_an_id_an_event_and_a_received_event_are_equivalent() -> None:
    received = ReceivedEvent(outgoing("e1", Handlers().to("h")))
    with MemoryStore().transaction() as transaction:
        assert inbox.admit(transaction, "billing", "e1")
        assert not inbox.admit(transaction, "billing", Event("order.placed", {}, event_id="e1"))
        assert not inbox.admit(transaction, "billing", received)


def test_any_other_name_and_id_is_accepted() -> None:
    with MemoryStore().transaction() as transaction:
        assert inbox.admit(transaction, "rechnung: größe/№1", "urn:übergröße;" + "x" * 200)
