"""The destination that an event waits for, from the relays and overrides in the store."""

from collections.abc import Mapping
from typing import Any

import pytest

from pillarbox.core.message import Held
from pillarbox.core.outcome import DELIVERED
from pillarbox.core.store import EVERYWHERE
from pillarbox.ops import waiting_reasons
from pillarbox.testing.conformance.events import event
from pillarbox.testing.conformance.lane_owner import LONG, Owner, join
from pillarbox.testing.memory import MemoryHarness


async def reasons_of(harness: MemoryHarness) -> list[str]:
    story = await harness.store.admin.events.show("a")
    return [
        waiting_reasons.waits_for(view) for view in await waiting_reasons.unavailable_destinations(harness.store, story)
    ]


async def waiting(harness: MemoryHarness, *, to: str, breakers: Mapping[str, str]) -> Owner:
    """A pending event for `to`, and a relay with these breaker states."""
    await harness.commit(event("a", "k"))
    owner = await Owner.of(harness.store)
    await harness.store.lanes.renew(owner.relay, lease=LONG, breakers=breakers)
    if to:
        await owner.hold(Held.PARKED, *await owner.ready(), to=to)
    return owner


@pytest.mark.parametrize(
    ("breaker", "override", "words"),
    [
        ("closed", {}, []),
        ("open", {}, ["orders (breaker open)"]),
        ("half-open", {}, ["orders (breaker half-open)"]),
        ("open", {"breaker": "closed"}, []),
        ("closed", {"paused": True}, ["orders (paused by an operator)"]),
        ("closed", {"breaker": "open"}, ["orders (breaker forced open by an operator)"]),
        ("closed", {"rate_limit": 0.5}, ["orders (at most 30/m)"]),
        ("open", {"rate_limit": 5}, ["orders (breaker open, at most 5/s)"]),
    ],
)
async def test_an_event_waits_for_an_unavailable_or_limited_destination(
    breaker: str, override: dict[str, Any], words: list[str]
) -> None:
    harness = MemoryHarness()
    await waiting(harness, to="orders", breakers={"orders": breaker, "mailer": "open"})
    if override:
        await harness.store.admin.requests.override("orders", **override)
    assert await reasons_of(harness) == words


async def test_a_breaker_forced_closed_reports_failing_sends() -> None:
    harness = MemoryHarness()
    await waiting(harness, to="orders", breakers={"orders": "closed"})
    await harness.store.admin.requests.override("orders", breaker="closed")
    await harness.store.destinations.report("orders", error="refused", next_attempt=5)
    assert await reasons_of(harness) == ["orders (breaker forced closed by an operator, sends fail)"]


async def test_one_relay_that_can_send_is_enough() -> None:
    harness = MemoryHarness()
    await waiting(harness, to="orders", breakers={"orders": "open"})
    await harness.store.lanes.renew(await join(harness.store), lease=LONG, breakers={"orders": "closed"})
    assert await reasons_of(harness) == []


async def test_an_event_without_destination_waits_while_all_are_unavailable() -> None:
    harness = MemoryHarness()
    owner = await waiting(harness, to="", breakers={"orders": "open", "mailer": "half-open"})
    await harness.store.admin.requests.override("archive", rate_limit=5)
    assert await reasons_of(harness) == ["mailer (breaker half-open)", "orders (breaker open)"]
    await harness.store.lanes.renew(owner.relay, lease=LONG, breakers={"orders": "open", "mailer": "closed"})
    assert await reasons_of(harness) == []


@pytest.mark.parametrize(("to", "words"), [("", "every destination"), ("orders", "orders")])
async def test_a_pause_of_all_destinations_applies_to_every_event(to: str, words: str) -> None:
    harness = MemoryHarness()
    await waiting(harness, to=to, breakers={})
    await harness.store.admin.requests.override(EVERYWHERE, paused=True)
    assert await reasons_of(harness) == [f"{words} (paused by an operator)"]


async def test_a_delivered_event_waits_for_nothing() -> None:
    harness = MemoryHarness()
    owner = await waiting(harness, to="", breakers={"orders": "open"})
    await owner.settle(DELIVERED, *await owner.ready(), to="orders")
    assert await reasons_of(harness) == []
