"""Registration of handlers, and what is rejected before anything is sent."""

from collections.abc import AsyncIterator, Callable, Iterator
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

import pytest

from pillarbox.core.errors import ConfigurationError
from pillarbox.transports.handlers import HandlerAddress, HandlerContext, Handlers, ReceivedEvent, transport
from tests.unit.transports.batches import call


def nothing(event: ReceivedEvent, context: HandlerContext) -> None:
    pass


class Billing:
    event_type = ("order.placed", "order.paid")

    def __init__(self) -> None:
        self.seen: list[str] = []

    async def handle(self, event: ReceivedEvent, context: HandlerContext) -> None:
        self.seen.append(event.event_type)


class NamedBilling(Billing):
    name = "billing"


class Numbered(Billing):
    def __init__(self, number: int) -> None:
        super().__init__()
        self.name = f"async {number}"


def test_an_event_goes_to_every_handler_of_its_type_in_order_of_registration() -> None:
    handlers = Handlers()
    for name, pattern in [("b", "order.placed"), ("a", "order.*"), ("all", "*"), ("other", "invoice.*")]:
        handlers.on(pattern, name=name)(nothing)
    assert handlers.names_for("order.placed") == ["b", "a", "all"]
    assert handlers.names_for("order.paid") == ["a", "all"]
    assert handlers.names_for("ORDER.placed") == ["all"]


def test_only_handlers_with_a_pattern_are_matched_against_a_type(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    handlers = Handlers()
    for n in range(100):
        handlers.on(f"type {n}", f"kind {n}", name=f"h{n}")(nothing)
    handlers.on("type 7", "kind ?", name="pattern")(nothing)
    handlers.on("type 7", name="last")(nothing)

    def matches(event_type: str, pattern: str) -> bool:
        asked.append(pattern)
        return fnmatchcase(event_type, pattern)

    monkeypatch.setattr(transport, "fnmatchcase", matches)
    assert handlers.names_for("type 7") == ["h7", "pattern", "last"]
    assert handlers.names_for("kind 7") == ["h7", "pattern"]
    assert handlers.names_for("kind 99") == ["h99"]
    assert set(asked) == {"type 7", "kind ?"}


async def test_a_called_handler_is_not_kept_alive() -> None:
    handlers = Handlers()
    for n in range(20):
        handlers.on(f"type {n}", name=f"sync {n}")(nothing)
        handlers.add(Numbered(n))
        assert await call(handlers, f"sync {n}") is None
        assert await call(handlers, f"async {n}") is None
    assert handlers._running == set()


def test_without_routes_each_handler_is_a_destination() -> None:
    handlers = Handlers()
    handlers.on("order.placed", name="mailer")(nothing)
    assert handlers.defaults("order.placed") == {"mailer": HandlerAddress(name="mailer")}
    assert handlers.defaults("order.paid") == {}


def test_the_decorator_returns_the_function_unchanged() -> None:
    assert Handlers().on("a")(nothing) is nothing


def test_the_default_name_is_module_and_qualname() -> None:
    handlers = Handlers()
    handlers.on("a")(nothing)
    handlers.add(Billing())
    assert handlers.names_for("a") == [f"{__name__}.nothing"]
    assert handlers.names_for("order.paid") == [f"{__name__}.Billing"]


def test_one_handler_can_handle_several_types() -> None:
    handlers = Handlers()
    handlers.on("a", "b.*", name="h")(nothing)
    assert [handlers.names_for(kind) for kind in ("a", "b.c", "c")] == [["h"], ["h"], []]


async def test_an_object_with_event_type_and_handle_is_a_handler() -> None:
    handlers, billing = Handlers(), NamedBilling()
    handlers.add(billing)
    assert await call(handlers, "billing", event_type="order.placed") is None
    assert billing.seen == ["order.placed"]


def test_a_handler_name_is_unique() -> None:
    handlers = Handlers()
    handlers.on("a", name="h")(nothing)
    with pytest.raises(ConfigurationError, match="h is already registered"):
        handlers.on("b", name="h")(nothing)


async def yields_async(event: Any, context: Any) -> AsyncIterator[None]:
    yield


def yields(event: Any, context: Any) -> Iterator[None]:
    yield


def too_few(event: Any) -> None: ...


def too_many(event: Any, context: Any, more: Any) -> None: ...


@pytest.mark.parametrize("function", [yields, yields_async, too_few, too_many, "no function"])
def test_an_uncallable_handler_is_rejected_at_once(function: Any) -> None:
    with pytest.raises(ConfigurationError, match="handler h"):
        Handlers().on("a", name="h")(function)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Handlers().on()(nothing),
        lambda: Handlers().on("")(nothing),
        lambda: Handlers().on("a", name="two\nlines")(nothing),
        lambda: Handlers(workers=0),
        lambda: Handlers(timeout="soon"),
    ],
)
def test_invalid_settings_are_rejected(make: Callable[[], object]) -> None:
    with pytest.raises(ConfigurationError):
        make()


def test_other_callables_are_accepted() -> None:
    handlers = Handlers()
    handlers.on("a", name="partial")(partial(too_many, more=1))
    handlers.on("a", name="built-in")(max)
    handlers.on("a", name="method")(Billing().handle)
    assert handlers.names_for("a") == ["partial", "built-in", "method"]


class AsyncCall:
    def __init__(self) -> None:
        self.called = False

    async def __call__(self, event: ReceivedEvent, context: HandlerContext) -> None:
        self.called = True


async def test_an_object_with_an_async_call_is_awaited() -> None:
    handlers, handler = Handlers(), AsyncCall()
    handlers.on("a", name="h")(handler)
    assert await call(handlers) is None
    assert handler.called
