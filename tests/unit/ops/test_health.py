"""The state of the flow, and its main reason."""

import pytest

from pillarbox.admin.overview import LaneView, Overview, RelayView
from pillarbox.core.store import Override
from pillarbox.ops.health import DEFAULT_SLO, Flow, destinations_of, flow


def relay(name: str = "a", *, lease: float = 10, **breakers: str) -> RelayView:
    return RelayView(name, "", "here", lease, breakers)


def overview(*relays: RelayView, owners: str = "aa", oldest: float | None = 1.0) -> Overview:
    lanes = [LaneView(number, owner if owner != "-" else None, 1, 0) for number, owner in enumerate(owners)]
    return Overview(5, oldest, True, 0, lanes, list(relays))


def override(destination: str, *, paused: bool = False, **more: object) -> Override:
    return Override(destination, paused, **({"breaker": None, "rate_limit": None, "last_error": None} | more))  # type: ignore[arg-type]  # as each test needs it


def answer(seen: Overview, *overrides: Override) -> Flow:
    paused = any(w.destination == "*" and w.paused for w in overrides)
    return flow(seen, destinations_of(seen.relays, overrides), paused=paused)


def told(seen: Overview, *overrides: Override) -> tuple[str, str]:
    found = answer(seen, *overrides)
    return found.state, found.reason


def test_a_healthy_outbox_is_flowing() -> None:
    assert told(overview(relay(orders="closed"))) == ("flowing", "")


@pytest.mark.parametrize("relays", [(), (relay(lease=-1),)])
def test_without_a_running_relay_the_flow_is_stopped(relays: tuple[RelayView, ...]) -> None:
    found = answer(overview(*relays))
    assert found.state == "stopped"
    assert "pillarbox relay" in found.reason


def test_the_flow_is_stopped_if_every_destination_is_paused() -> None:
    assert told(overview(relay()), override("*", paused=True)) == (
        "stopped",
        "every destination is paused by an operator.",
    )


def test_the_flow_is_stopped_if_no_lane_has_an_owner() -> None:
    assert answer(overview(relay(), owners="--")).state == "stopped"


def test_a_lane_of_a_crashed_relay_degrades_the_flow() -> None:
    assert told(overview(relay(), relay("b", lease=-1), owners="ab")) == (
        "degraded",
        "1 of 2 lanes has no running owner.",
    )


def test_an_unavailable_destination_is_named_with_its_error() -> None:
    seen = overview(relay(orders="open"), relay("b", orders="open"), owners="ab")
    assert told(seen, override("orders", last_error="refused\nat once")) == (
        "degraded",
        "orders is unavailable: refused.",
    )


def test_one_relay_that_can_send_is_enough() -> None:
    seen = overview(relay(orders="open"), relay("b", orders="closed"), owners="ab")
    assert answer(seen).state == "flowing"


def test_the_breaker_of_a_crashed_relay_is_ignored() -> None:
    seen = overview(relay(orders="closed"), relay("b", lease=-1, mail="open"))
    assert answer(seen).state == "flowing"


@pytest.mark.parametrize(
    ("set_by", "why"),
    [
        (override("mail", paused=True), "mail is paused by an operator"),
        (override("mail", breaker="open"), "mail is forced open by an operator"),
        (override("mail", paused=True)._replace(last_error="410 Gone"), "mail is paused: 410 Gone"),
    ],
)
def test_overrides_of_operators_are_named(set_by: Override, why: str) -> None:
    assert told(overview(relay(mail="closed")), set_by) == ("degraded", f"{why}.")


def test_a_breaker_forced_closed_does_not_degrade_the_flow() -> None:
    assert answer(overview(relay(mail="open")), override("mail", breaker="closed")).state == "flowing"


def test_a_failing_breaker_forced_closed_is_named() -> None:
    assert told(overview(relay(mail="closed")), override("mail", breaker="closed", last_error="refused\nat once")) == (
        "degraded",
        "mail is forced closed by an operator, but sends fail: refused.",
    )


def test_a_half_open_breaker_is_being_probed() -> None:
    assert answer(overview(relay(mail="half-open"))).reason == "mail is being probed."


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        (1, "1 key is blocked; `pillarbox keys blocked` lists it"),
        (10_001, "more than 10,000 keys are blocked; `pillarbox keys blocked` lists them"),
    ],
)
def test_blocked_keys_degrade_the_flow(keys: int, why: str) -> None:
    assert told(overview(relay())._replace(blocked=keys)) == ("degraded", f"{why}.")


def test_all_reasons_are_named() -> None:
    seen = overview(relay(mail="open"), owners="a-")._replace(blocked=2)
    assert answer(seen).reason == (
        "mail is unavailable. 1 of 2 lanes has no running owner. "
        "2 keys are blocked; `pillarbox keys blocked` lists them."
    )


def test_an_event_older_than_the_objective_degrades_the_flow() -> None:
    late = overview(relay(orders="closed"), oldest=DEFAULT_SLO + 1)._replace(oldest_event="evt 42")
    assert told(late) == (
        "degraded",
        "the oldest event is pending for longer than the 60 s of console.slo: "
        "`pillarbox events show 'evt 42'` says why.",
    )
    assert flow(late, [], paused=False, allowed=DEFAULT_SLO + 1).state == "flowing"


def test_a_reason_takes_precedence_over_the_age() -> None:
    late = overview(relay(orders="open"), oldest=DEFAULT_SLO + 1)._replace(oldest_event="e")
    assert answer(late).reason == "orders is unavailable."
