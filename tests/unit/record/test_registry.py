"""A registry validates, versions and routes registered types; others pass unless it is strict."""

from typing import Any

import pytest
from pydantic import BaseModel

from pillarbox import ConfigurationError, Event, EventTypes, RecordError
from pillarbox.core.rows import EventRow
from pillarbox.record.rows import row_of


class Item(BaseModel):
    sku: str
    quantity: int


class OrderPlaced(BaseModel):
    id: int
    lines: list[Item] = []


def _row(registry: EventTypes, event: Event) -> EventRow:
    return row_of(event, registry=registry, max_payload=1000)


def test_registered_version_and_destination_are_defaults() -> None:
    types = EventTypes()
    types.register("order.placed", version=2, destination="orders")
    row = _row(types, Event("order.placed", {}))
    assert (row.schema_version, row.destination) == (2, "orders")
    row = _row(types, Event("order.placed", {}, schema_version=1, destination="elsewhere"))
    assert (row.schema_version, row.destination) == (1, "elsewhere")


def test_an_unknown_type_is_recorded_unchanged() -> None:
    row = _row(EventTypes(), Event("order.placed", {}))
    assert (row.schema_version, row.destination) == (1, "")


def test_a_strict_registry_rejects_unknown_types() -> None:
    with pytest.raises(RecordError, match=r"'order\.placed' is not registered") as caught:
        _row(EventTypes(strict=True), Event("order.placed", {}))
    assert caught.value.field == "event_type"


def test_a_model_validates_dicts_and_its_own_instances() -> None:
    types = EventTypes()
    types.register("order.placed", validator=OrderPlaced)
    assert _row(types, Event("order.placed", {"id": 1})).payload == b'{"id":1}'
    assert _row(types, Event("order.placed", OrderPlaced(id=1))).payload == b'{"id":1,"lines":[]}'


def test_a_validation_error_names_the_path_and_not_the_value() -> None:
    types = EventTypes()
    types.register("order.placed", validator=OrderPlaced)
    payload = {"id": 1, "lines": [{"sku": "a", "quantity": 1}, {"sku": "b", "quantity": "secret"}]}
    with pytest.raises(RecordError, match=r"order\.placed: payload\.lines\[1\]\.quantity: Input should") as caught:
        _row(types, Event("order.placed", payload))
    assert caught.value.field == "payload"
    assert "secret" not in str(caught.value)
    with pytest.raises(RecordError, match=r"payload\.id: .* \(and 1 more\)"):
        _row(types, Event("order.placed", {"lines": 7}))


def test_a_function_rejects_by_raising_or_returning_false() -> None:
    def positive(payload: Any) -> bool:
        return bool(payload["total"] > 0)

    types = EventTypes()
    types.register("order.placed", validator=positive)
    _row(types, Event("order.placed", {"total": 1}))
    with pytest.raises(RecordError, match=r"order\.placed: the validator rejects"):
        _row(types, Event("order.placed", {"total": 0}))
    with pytest.raises(RecordError, match=r"order\.placed: 'total'") as caught:
        _row(types, Event("order.placed", {}))
    assert isinstance(caught.value.__cause__, KeyError)


def test_a_function_that_returns_none_accepts() -> None:
    types = EventTypes()
    types.register("order.placed", validator=lambda payload: None)
    assert _row(types, Event("order.placed", {})).payload == b"{}"


def test_an_older_payload_is_upcast_step_by_step() -> None:
    types = EventTypes()
    types.register(
        "order.placed",
        version=3,
        upcasters={1: lambda payload: payload | {"currency": "EUR"}, 2: lambda payload: payload | {"lines": []}},
    )
    assert types.upcast("order.placed", 1, {"id": 1}) == {"id": 1, "currency": "EUR", "lines": []}
    assert types.upcast("order.placed", 2, {"id": 1}) == {"id": 1, "lines": []}
    assert types.upcast("order.placed", 3, {"id": 1}) == {"id": 1}
    assert types.upcast("unknown", 1, {"id": 1}) == {"id": 1}


def test_a_version_without_upcaster_or_too_new_is_an_error() -> None:
    types = EventTypes()
    types.register("order.placed", version=3, upcasters={2: lambda payload: payload})
    with pytest.raises(ConfigurationError, match="no upcaster for version 1"):
        types.upcast("order.placed", 1, {})
    with pytest.raises(ConfigurationError, match="version 4 is newer than the registered 3"):
        types.upcast("order.placed", 4, {})


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"version": 4, "upcasters": {1: str, 3: str}}, "no upcaster from version 2 to 3"),
        ({"version": 3, "upcasters": {1: str}}, "no upcaster from version 2 to 3"),
        ({"version": 2, "upcasters": {1: str, 2: str}}, "must be for versions 1 to 1, not for 2"),
        ({"version": 2, "upcasters": {0: str, 1: str}}, "must be for versions 1 to 1"),
        ({"version": 2, "upcasters": {1: "no function"}}, "must map whole numbers to functions"),
        ({"version": 2, "upcasters": {"1": str}}, "must map whole numbers to functions"),
        ({"version": 0}, "an integer of 1 or more"),
        ({"version": True}, "an integer of 1 or more"),
        ({"validator": dict}, "the class dict cannot validate"),
        ({"validator": "model"}, "must be a pydantic model or a function"),
        ({"destination": "a\nb"}, "control character"),
    ],
)
def test_invalid_registrations_are_rejected(arguments: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        EventTypes().register("order.placed", **arguments)


def test_a_type_is_registered_once() -> None:
    types = EventTypes()
    types.register("order.placed")
    with pytest.raises(ConfigurationError, match="already registered"):
        types.register("order.placed", version=2)


def test_registered_types_can_be_looked_up() -> None:
    types = EventTypes()
    registered = types.register("order.placed", version=2)
    assert types.find("order.placed") is registered
    assert registered.version == 2
    assert types.find("unknown") is None
