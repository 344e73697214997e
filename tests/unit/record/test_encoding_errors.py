"""Values that JSON cannot represent are rejected with their path and advice."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from pydantic import BaseModel, field_serializer

from pillarbox import RecordError
from pillarbox.record.encoding import DEEPEST, encode


@dataclass
class Item:
    price: Any


class Model(BaseModel):
    name: str

    @field_serializer("name")
    def broken(self, _value: str) -> str:
        raise RuntimeError("broken serializer")


def _refused(payload: object, reason: str) -> None:
    with pytest.raises(RecordError, match="^" + reason) as caught:
        encode(payload)
    assert caught.value.field == "payload"


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (float("nan"), "nan is not a valid JSON number"),
        (float("-inf"), "-inf is not a valid JSON number"),
        (Decimal("NaN"), "NaN is not a number"),
        (Decimal("Infinity"), "Infinity is not a number"),
        (datetime(2026, 11, 15), "a datetime without time zone"),
        ({1, 2}, "set cannot be encoded as JSON; pass a sorted list"),
        (b"raw", "bytes cannot be encoded as JSON; encode it as base64"),
        (object(), "object cannot be encoded as JSON"),
        (timedelta(1), "timedelta cannot be encoded as JSON"),
        (1j, "complex cannot be encoded as JSON"),
        (Item, "type cannot be encoded as JSON"),
        (Model, "ModelMetaclass cannot be encoded as JSON"),
        (Model(name="x"), "Model cannot be dumped: .*broken serializer"),
        ("ab\udfff", "a lone surrogate at position 2"),
        (10**5000, "a whole number with thousands of digits"),
        (iter([1]), "list_iterator cannot be encoded as JSON"),
    ],
    ids=lambda given: type(given).__name__,
)
def test_the_error_has_the_path_of_the_value(value: object, reason: str) -> None:
    _refused({"items": [1, {}, {"price": value}]}, rf"payload\.items\[2\]\.price: {reason}")
    _refused([Item(value)], rf"payload\[0\]\.price: {reason}")
    _refused({"a b": {"": value}}, rf"payload\['a b'\]\[''\]: {reason}")


@pytest.mark.parametrize("key", [1, 1.5, None, True, b"k", ("a",)], ids=repr)
def test_keys_other_than_text_are_rejected(key: object) -> None:
    _refused({"items": [{key: 1}]}, rf"payload\.items\[0\]: a key is {type(key).__name__}")


def test_a_key_with_a_lone_surrogate_is_rejected() -> None:
    _refused({"a": {"\ud800": 1}}, r"payload\.a: the key .* lone surrogate")


@pytest.mark.parametrize("payload", ["text", 42, 1.5, None, True, Decimal(1), datetime.now().astimezone()], ids=repr)
def test_a_scalar_payload_is_rejected_with_advice(payload: object) -> None:
    _refused(payload, rf"payload: {type(payload).__name__} at the top .* wrap it in a dict, or pass bytes")


def test_a_set_is_rejected_as_payload() -> None:
    _refused({1, 2}, "payload: set cannot be encoded as JSON")


def _nested(levels: int, innermost: Any) -> Any:
    for _ in range(levels):
        innermost = [innermost]
    return innermost


@pytest.mark.parametrize("innermost", [1, 1.5, Decimal(1)], ids=repr)
def test_nesting_is_limited(innermost: object) -> None:
    assert encode(_nested(DEEPEST, innermost))
    _refused(_nested(DEEPEST + 1, innermost), r"payload(\[0\])+: nested deeper than")
    _refused(_nested(100_000, innermost), r"payload(\[0\])+: nested deeper than")


def _circles() -> Iterator[object]:
    circular: dict[str, Any] = {}
    circular["self"] = circular
    yield circular
    line = Item(None)
    line.price = [line]
    yield line


@pytest.mark.parametrize("circular", list(_circles()), ids=["dict", "dataclass"])
def test_circular_payloads_are_rejected(circular: object) -> None:
    _refused(circular, "payload.*or it contains itself")
