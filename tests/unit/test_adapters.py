"""`pillarbox.adapters` has every name that an author of an adapter needs."""

import inspect
import typing
from collections.abc import Iterator

import pytest

from pillarbox import adapters

ROOTS = [
    adapters.AdminStore,
    adapters.AsyncEventTransaction,
    adapters.AsyncInboxTransaction,
    adapters.Engine,
    adapters.EventTransaction,
    adapters.InboxTransaction,
    adapters.Source,
    adapters.SqlAdmin,
    adapters.StoreHarness,
    adapters.StorePlugin,
    adapters.StreamingTransport,
    adapters.TransportPlugin,
]


def classes_in(hint: object) -> Iterator[type]:
    """The classes of Pillarbox in a type."""
    if isinstance(hint, type) and hint.__module__.startswith("pillarbox."):
        yield hint
    for argument in typing.get_args(hint):
        yield from classes_in(list(argument) if isinstance(argument, list) else argument)
    if isinstance(hint, list):
        for one in hint:
            yield from classes_in(one)


def signatures(cls: type) -> Iterator[object]:
    """The types of the public methods, properties and fields of a class."""
    for name, member in inspect.getmembers(cls):
        if name.startswith("_") and name != "__init__":
            continue
        function = member.fget if isinstance(member, property) else member
        if inspect.isfunction(function) and function.__module__.startswith("pillarbox."):
            yield from typing.get_type_hints(function).values()
    if cls.__module__.startswith("pillarbox."):
        yield from typing.get_type_hints(cls).values()


def needed() -> dict[str, type]:
    """Every class in the signatures of the protocols, and in the signatures of those classes."""
    found: dict[str, type] = {}
    pending: list[type] = list(ROOTS)
    while pending:
        cls = pending.pop()
        if cls.__name__.startswith("_") or cls.__name__ in found:
            continue
        found[cls.__name__] = cls
        for hint in signatures(cls):
            pending += classes_in(hint)
    return found


def test_every_name_in_the_signatures_of_the_protocols_is_exported() -> None:
    missing = {name: cls.__module__ for name, cls in needed().items() if getattr(adapters, name, None) is not cls}
    assert missing == {}


@pytest.mark.parametrize("name", adapters.__all__)
def test_every_exported_name_can_be_imported(name: str) -> None:
    assert getattr(adapters, name) is not None
