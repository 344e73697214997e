"""Invalid consumers are rejected when they are created."""

from typing import Any

import pytest

from pillarbox import ConfigurationError, Consumer
from pillarbox.stores.memory import MemoryStore

TRANSACTION = MemoryStore().transaction


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"name": ""}, "consumer is empty"),
        ({"name": "a\nb"}, "control character"),
        ({"workers": 0}, "use at least 1"),
        ({"drain_timeout": "soon"}, "drain_timeout"),
    ],
)
def test_invalid_settings_are_rejected(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        Consumer(**{"name": "billing", "transaction": TRANSACTION, **settings})


def _yields(transaction: object, event: object) -> Any:
    yield


def _takes_too_little(event: object) -> None: ...


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (_yields, "is a generator"),
        (_takes_too_little, r"cannot be called with \(transaction, event\)"),
        (42, "is not callable"),
    ],
    ids=["generator", "one argument", "number"],
)
def test_an_uncallable_function_is_rejected(function: Any, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        Consumer(name="billing", transaction=TRANSACTION).on("order.placed")(function)


def test_a_second_function_for_a_type_is_rejected() -> None:
    consumer = Consumer(name="billing", transaction=TRANSACTION)
    consumer.on("order.placed", "order.paid")(lambda transaction, event: None)
    with pytest.raises(ConfigurationError, match="for a second one create a second consumer"):
        consumer.on("order.paid")(lambda transaction, event: None)
    assert consumer.event_type == ("order.placed", "order.paid")


def test_a_function_without_a_type_is_rejected() -> None:
    with pytest.raises(ConfigurationError, match="at least one event type"):
        Consumer(name="billing", transaction=TRANSACTION).on()(lambda transaction, event: None)
