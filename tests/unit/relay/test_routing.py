"""Routing: the first match applies, an explicit destination takes precedence, and without routes the type decides."""

from __future__ import annotations

from typing import Any

import pytest

from pillarbox.core.message import Message
from pillarbox.relay import routing as module
from pillarbox.relay.envelope import Envelope, Payload
from pillarbox.relay.routing import Destination, DestinationEndpoint, Route, Routing
from tests.unit.relay.endpoints import HandlerAddress, QueueAddress, Queues, Registry
from tests.unit.relay.messages import inserted_by_plain_sql, message

ORDERS = QueueAddress(queue="orders")
MAILER = HandlerAddress(handler="mailer")
AUDIT = QueueAddress(queue="audit")


def routed(*routes: Route) -> Routing:
    return Routing(
        routes,
        {"orders": ORDERS, "mailer": MAILER, "audit": AUDIT},
        {"rabbit": Queues(), "handlers": Registry()},
    )


def of_type(event_type: str, aggregate_type: str | None = "ORDER") -> Message:
    return message(event_type=event_type, aggregate_type=aggregate_type)


def test_the_first_matching_route_applies() -> None:
    routing = routed(Route(event_type="order.placed", to=["mailer"]), Route(event_type="order.*", to=["orders"]))
    assert routing.resolve(of_type("order.placed")) == ("mailer",)
    assert routing.resolve(of_type("order.paid")) == ("orders",)


def test_destinations_are_in_the_order_of_the_route() -> None:
    routing = routed(Route(to=["mailer", "orders", "audit"]))
    assert routing.resolve(message()) == ("mailer", "orders", "audit")


def test_type_and_aggregate_type_must_both_match() -> None:
    routing = routed(Route(event_type="*.placed", aggregate_type="ORD*", to=["orders"]))
    assert routing.resolve(of_type("order.placed", "ORDER")) == ("orders",)
    assert routing.resolve(of_type("order.placed", "CART")) == ()
    assert routing.resolve(of_type("order.paid", "ORDER")) == ()


def test_patterns_are_case_sensitive() -> None:
    routing = routed(Route(event_type="Order*", to=["orders"]))
    assert routing.resolve(of_type("OrderPlaced")) == ("orders",)
    assert routing.resolve(of_type("orderPlaced")) == ()


def test_patterns_are_shell_patterns() -> None:
    routing = routed(Route(event_type="order.v[12].?", to=["orders"]))
    assert routing.resolve(of_type("order.v1.x")) == ("orders",)
    assert routing.resolve(of_type("order.v3.x")) == ()
    assert routing.resolve(of_type("orderXv1Xx")) == ()


def test_an_event_without_aggregate_type_matches_only_a_star() -> None:
    plain = inserted_by_plain_sql("order.placed", b"{}")
    assert routed(Route(aggregate_type="ORDER", to=["orders"])).resolve(plain) == ()
    assert routed(Route(aggregate_type="?*", to=["orders"])).resolve(plain) == ()
    assert routed(Route(to=["orders"])).resolve(plain) == ("orders",)


def test_an_event_with_a_destination_ignores_routes() -> None:
    routing = routed(Route(to=["orders"]))
    assert routing.resolve(message(destination="audit")) == ("audit",)


def test_an_unknown_destination_has_no_route() -> None:
    assert routed(Route(to=["orders"])).resolve(message(destination="elsewhere")) == ()


def test_destinations_without_routes_receive_events_that_name_them() -> None:
    routing = routed()
    assert routing.resolve(message()) == ()
    assert routing.resolve(message(destination="orders")) == ("orders",)


def test_an_endpoint_has_its_transport() -> None:
    rabbit, handlers = Queues(), Registry()
    orders = Destination(ORDERS, body="envelope", rate_limit="30/m")
    routing = Routing([], {"orders": orders, "mailer": MAILER}, {"rabbit": rabbit, "handlers": handlers})
    place = routing.endpoint("orders")
    assert place.destination is orders
    assert (place.name, place.transport_name) == ("orders", "rabbit")
    assert place.transport is rabbit
    assert (place.destination.body, place.destination.rate_limit) == (Envelope(), 0.5)
    plain = routing.endpoint("mailer")
    assert plain.transport is handlers
    assert (plain.destination.body, plain.destination.rate_limit) == (Payload(), None)
    assert [place.name for place in routing.endpoints()] == ["orders", "mailer"]


def test_without_routes_the_event_type_determines_the_destination() -> None:
    rabbit = Queues()
    routing = Routing([], {}, {"rabbit": rabbit})
    assert routing.endpoints() == []
    assert routing.resolve(of_type("order.placed")) == ("order.placed",)
    assert routing.endpoint("order.placed").destination.address == QueueAddress(queue="order.placed")
    assert [place.name for place in routing.endpoints()] == ["order.placed"]


def test_without_routes_every_transport_is_asked() -> None:
    handlers = Registry(mailer="order.placed", ledger="order.placed", stranger="order.paid")
    routing = Routing([], {}, {"handlers": handlers, "rabbit": Queues()})
    assert routing.resolve(of_type("order.placed")) == ("mailer", "ledger", "order.placed")
    assert routing.endpoint("ledger").transport is handlers


def test_without_routes_an_unknown_type_has_no_route() -> None:
    assert Routing([], {}, {"handlers": Registry()}).resolve(message()) == ()


def test_a_handler_registered_later_is_found() -> None:
    handlers = Registry()
    routing = Routing([], {}, {"handlers": handlers})
    assert routing.resolve(of_type("order.placed")) == ()
    handlers.handlers["mailer"] = "order.placed"
    assert routing.resolve(of_type("order.placed")) == ("mailer",)


def test_a_pending_message_keeps_its_default_destination_after_a_restart() -> None:
    routing = Routing([], {}, {"handlers": Registry(mailer="order.placed", ledger="order.placed")})
    assert routing.resolve(message(event_type="order.placed", destination="ledger")) == ("ledger",)
    assert routing.endpoint("ledger").destination.address == HandlerAddress(handler="ledger")


@pytest.mark.parametrize("met_before", [False, True])
def test_default_destinations_do_not_depend_on_earlier_events(met_before: bool) -> None:
    routing = Routing([], {}, {"handlers": Registry(mailer="order.placed")})
    if met_before:
        routing.resolve(of_type("order.placed"))
    assert routing.resolve(message(event_type="order.paid", destination="mailer")) == ()


def test_two_transports_with_the_same_default_name_both_get_the_event() -> None:
    one, other = Queues(), Queues()
    routing = Routing([], {}, {"one": one, "other": other})
    first, second = routing.resolve(of_type("order.placed"))
    assert routing.endpoint(first).transport is one
    assert routing.endpoint(second).transport is other


def test_a_default_name_of_one_type_is_kept_for_it() -> None:
    rabbit, handlers = Queues(), Registry(**{"order.placed": "order.paid"})
    routing = Routing([], {}, {"rabbit": rabbit, "handlers": handlers})
    [queue] = routing.resolve(of_type("order.placed"))
    routing.resolve(of_type("order.paid"))
    assert routing.endpoint(queue).transport is rabbit


def test_the_route_cache_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_CACHED", 3)
    rabbit = Queues()
    routing = Routing([], {}, {"rabbit": rabbit})
    for _ in range(2):
        for event_type in ("a", "b", "c"):
            assert routing.resolve(of_type(event_type)) == (event_type,)
    assert rabbit.asked == ["a", "b", "c"]
    assert routing.resolve(of_type("d")) == ("d",)
    assert routing.resolve(of_type("a")) == ("a",)
    assert rabbit.asked == ["a", "b", "c", "d", "a"]


class Walked(AssertionError):
    pass


class Unwalked(dict[str, DestinationEndpoint]):
    """Fails if it is iterated, which would take longer with every type."""

    def keys(self) -> Any:
        raise Walked

    def __iter__(self) -> Any:
        raise Walked


@pytest.mark.parametrize("most", [3, 1000])
def test_the_cost_of_a_new_type_does_not_grow(most: int) -> None:
    routing = Routing([], {}, {"rabbit": Queues()}, max_by_type=most)
    routing._endpoints = Unwalked()
    found = [routing.resolve(of_type(f"{number}")) for number in range(6)]
    assert sum(bool(names) for names in found) == min(most, 6)
