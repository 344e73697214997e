"""Python values that become JSON, anywhere in the payload."""

import enum
from collections import OrderedDict
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from pydantic import BaseModel, RootModel

from pillarbox.record.encoding import encode


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


class Kind(enum.StrEnum):
    BOOK = "book"


class Point(NamedTuple):
    x: int
    y: int


class Text(str):
    pass


@dataclass
class Item:
    sku: str
    price: Decimal


@dataclass(frozen=True, slots=True)
class Order:
    id: int
    lines: list[Item] = field(default_factory=list)


class Customer(BaseModel):
    name: str
    since: date
    orders: list[Order] = []


class Tags(RootModel[list[str]]):
    pass


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (datetime(2026, 11, 15, 8, 0, tzinfo=UTC), '"2026-11-15T08:00:00+00:00"'),
        (datetime(2026, 11, 15, 8, 0, 0, 5, timezone(timedelta(hours=-3.5))), '"2026-11-15T08:00:00.000005-03:30"'),
        (date(2026, 11, 15), '"2026-11-15"'),
        (time(8, 30), '"08:30:00"'),
        (Decimal("19.90"), '"19.90"'),
        (UUID(int=1), '"00000000-0000-0000-0000-000000000001"'),
        (Colour.RED, '"red"'),
        (Level.HIGH, "3"),
        (Kind.BOOK, '"book"'),
        (Point(1, 2), "[1,2]"),
        ((1, (2,)), "[1,[2]]"),
        (Text("ß"), '"ß"'),
        (OrderedDict(b=1, a=2), '{"b":1,"a":2}'),
        (Item("a", Decimal("1.10")), '{"sku":"a","price":"1.10"}'),
        (Tags(["x"]), '["x"]'),
        (1.5, "1.5"),
        (True, "true"),
        (None, "null"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_python_values_without_a_json_type(value: object, text: str) -> None:
    assert encode({"v": value}).decode() == f'{{"v":{text}}}'
    assert encode([[value], {"v": value}]).decode() == f'[[{text}],{{"v":{text}}}]'


def test_nested_models_and_dataclasses() -> None:
    order = Order(1, [Item("a", Decimal("9.99"))])
    customer = Customer(name="Ada", since=date(2026, 1, 2), orders=[order])
    inner = '{"id":1,"lines":[{"sku":"a","price":"9.99"}]}'
    assert encode(order).decode() == inner
    assert encode(customer).decode() == f'{{"name":"Ada","since":"2026-01-02","orders":[{inner}]}}'
    assert encode([customer]).decode() == f"[{encode(customer).decode()}]"


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_bytes_are_not_encoded(kind: Any) -> None:
    raw = bytes(range(256))
    assert encode(kind(raw)) == raw


def test_a_repeated_object_is_not_circular() -> None:
    shared = {"a": [1.5]}
    assert encode([shared, shared]) == b'[{"a":[1.5]},{"a":[1.5]}]'
