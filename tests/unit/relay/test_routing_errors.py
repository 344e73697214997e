"""Inconsistent routing is rejected when the relay is created, with a suggestion."""

from __future__ import annotations

from typing import Any

import pytest

from pillarbox.core.errors import ConfigurationError
from pillarbox.core.transport import Pace, Transport
from pillarbox.relay.routing import Destination, Route, Routing, per_second, rate_text
from tests.unit.relay.endpoints import HandlerAddress, QueueAddress, Queues, Registry

ORDERS = QueueAddress(queue="orders")


def test_a_route_to_an_unknown_destination_is_rejected_with_a_suggestion() -> None:
    with pytest.raises(ConfigurationError, match=r"'oders', which does not exist; did you mean 'orders'\?"):
        Routing([Route(to=["oders"])], {"orders": ORDERS, "mailer": ORDERS}, {"rabbit": Queues()})
    with pytest.raises(ConfigurationError, match="there are orders and audit"):
        Routing([Route(to=["zzz"])], {"orders": ORDERS, "audit": ORDERS}, {"rabbit": Queues()})
    with pytest.raises(ConfigurationError, match="there is none"):
        Routing([Route(to=["orders"])], {}, {"rabbit": Queues()})


def test_an_address_without_a_matching_transport_is_rejected() -> None:
    with pytest.raises(ConfigurationError, match="'mailer' is a HandlerAddress, which none of the transports rabbit"):
        Routing([], {"mailer": HandlerAddress(handler="mailer")}, {"rabbit": Queues()})


def test_an_ambiguous_address_must_name_its_transport() -> None:
    transports: dict[str, Transport] = {"near": Queues(), "far": Queues(), "handlers": Registry()}
    with pytest.raises(ConfigurationError, match="'orders' could go through near or far; say which with transport="):
        Routing([], {"orders": ORDERS}, transports)
    routing = Routing([], {"orders": QueueAddress(queue="orders", transport="far")}, transports)
    assert routing.endpoint("orders").transport_name == "far"


def test_the_transport_of_an_address_must_exist_and_match() -> None:
    transports: dict[str, Transport] = {"rabbit": Queues(), "handlers": Registry()}
    with pytest.raises(ConfigurationError, match=r"'rabit', which does not exist; did you mean 'rabbit'\?"):
        Routing([], {"orders": QueueAddress(queue="orders", transport="rabit")}, transports)
    with pytest.raises(ConfigurationError, match="its transport 'handlers' takes HandlerAddress"):
        Routing([], {"orders": QueueAddress(queue="orders", transport="handlers")}, transports)


def test_a_relay_without_transports_is_rejected() -> None:
    with pytest.raises(ConfigurationError, match="no transport"):
        Routing([], {}, {})


def test_a_route_has_destinations_without_duplicates() -> None:
    with pytest.raises(ConfigurationError, match="goes nowhere"):
        Route(to=[])
    with pytest.raises(ConfigurationError, match="names a destination twice"):
        Route(to=["orders", "orders"])
    with pytest.raises(ConfigurationError, match=r'write to=\["orders"\]'):
        Route(to="orders")


@pytest.mark.parametrize("name", ["", "a\nb", "x" * 256, "\ud800", 7, None])
def test_invalid_names_are_rejected(name: Any) -> None:
    with pytest.raises(ConfigurationError, match="the name of a destination"):
        Route(to=[name])
    with pytest.raises(ConfigurationError, match="the name of a destination"):
        Routing([], {name: ORDERS}, {"rabbit": Queues()})
    with pytest.raises(ConfigurationError, match="the name of a transport"):
        Routing([], {}, {name: Queues()})
    with pytest.raises(ConfigurationError, match="the pattern event_type of a route"):
        Route(event_type=name, to=["orders"])
    with pytest.raises(ConfigurationError, match="the pattern aggregate_type of a route"):
        Route(aggregate_type=name, to=["orders"])


def test_the_wildcard_is_not_a_valid_destination_name() -> None:
    with pytest.raises(ConfigurationError, match="stands for all of them"):
        Route(to=["*"])
    with pytest.raises(ConfigurationError, match="stands for all of them"):
        Routing([], {"*": ORDERS}, {"rabbit": Queues()})


def test_a_route_keeps_its_values() -> None:
    to = ["orders"]
    route = Route(to=to)
    to.append("audit")
    assert route.to == ("orders",)
    assert hash(route) == hash(Route(to=["orders"]))


@pytest.mark.parametrize(
    ("written", "expected"), [("500/s", 500), ("30/m", 0.5), ("1800/h", 0.5), (" 2.5 / s ", 2.5), (7, 7), (0.1, 0.1)]
)
def test_a_rate_is_read_per_second(written: str | float, expected: float) -> None:
    assert per_second(written) == pytest.approx(expected)
    assert Destination(ORDERS, rate_limit=written).rate_limit == pytest.approx(expected)


@pytest.mark.parametrize("written", ["500/s", "30/m", "1000/h", "1/h", "7/m", "90/m"])
def test_a_rate_is_formatted_as_written(written: str) -> None:
    assert rate_text(per_second(written)) == written


def test_a_fractional_rate_is_formatted_per_second() -> None:
    assert rate_text(0.123456) == "0.123456/s"


@pytest.mark.parametrize(
    "wrong", ["", "500", "/s", "5/d", "0/s", "-5/s", "5/s/s", "fast", 0, -1, float("inf"), float("nan"), True, b"5/s"]
)
def test_invalid_rates_are_rejected(wrong: Any) -> None:
    with pytest.raises(ConfigurationError, match="rate_limit"):
        Destination(ORDERS, rate_limit=wrong)


def test_a_destination_needs_a_valid_address_and_body() -> None:
    with pytest.raises(ConfigurationError, match="'orders' is not an address"):
        Destination("orders")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match=r"""^Destination\.body is 'xml': write "payload", "envelope" or """):
        Destination(ORDERS, body="xml")  # type: ignore[arg-type]


def test_a_pipelined_destination_needs_a_transport_that_keeps_the_order_of_a_batch() -> None:
    hot = Destination(ORDERS, ordering="pipelined")
    with pytest.raises(
        ConfigurationError, match="'hot' is pipelined, but its transport 'rabbit' does not keep the order"
    ):
        Routing([], {"hot": hot}, {"rabbit": Queues()})
    queues = Queues()
    queues.pace = Pace(in_order=True)
    assert Routing([], {"hot": hot}, {"rabbit": queues}).endpoint("hot").destination.ordering == "pipelined"


def test_an_unknown_ordering_is_rejected() -> None:
    with pytest.raises(ConfigurationError, match="""ordering is 'loose': write "strict" or "pipelined\""""):
        Destination(ORDERS, ordering="loose")  # type: ignore[arg-type]
