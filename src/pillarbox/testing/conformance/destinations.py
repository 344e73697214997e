"""Destinations: relays report errors, operators set overrides, and neither changes what the other wrote."""

from __future__ import annotations

from typing import Any

import pytest

from pillarbox.core.errors import ConfigurationError
from pillarbox.core.store import EVERYWHERE, Override
from pillarbox.testing.conformance.capability import needing
from pillarbox.testing.conformance.events import HOUR, at, event
from pillarbox.testing.conformance.harness import StoreHarness
from pillarbox.testing.conformance.lane_owner import Owner
from pillarbox.testing.conformance.listings import find_event

AS_IT_COMES = Override("orders", paused=False, breaker=None, rate_limit=None, last_error=None)


class DestinationsConformance:
    async def test_a_new_store_has_no_overrides_and_no_errors(self, harness: StoreHarness) -> None:
        assert await harness.store.destinations.overrides() == []

    async def test_a_reported_outage_is_visible_to_all_until_it_ends(self, harness: StoreHarness) -> None:
        other = await harness.second_store()
        await harness.store.destinations.report("orders", error="connection refused", next_attempt=5)
        assert await other.destinations.overrides() == [AS_IT_COMES._replace(last_error="connection refused")]
        await other.destinations.report("orders", error="blocked", next_attempt=None)
        assert await other.destinations.overrides() == [AS_IT_COMES._replace(last_error="blocked")]
        await harness.store.destinations.report("orders", error=None, next_attempt=None)
        await harness.store.destinations.report("orders", error=None, next_attempt=None)
        assert await other.destinations.overrides() == []

    async def test_a_reported_error_is_stored_without_control_characters(self, harness: StoreHarness) -> None:
        await harness.store.destinations.report("orders", error="NUL \0, half \ud800 a pair", next_attempt=1e18)
        [row] = await harness.store.destinations.overrides()
        assert row.last_error == "NUL \\x00, half \\xd800 a pair"

    async def test_in_an_outage_the_next_attempt_is_that_of_the_destination(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("tried"), event("untried", destination="orders"))
        await owner.count_attempt("connection refused", (await owner.ready())[0], to="orders")
        await harness.store.destinations.report("orders", error="connection refused", next_attempt=HOUR)
        [tried] = await find_event(harness.store, "tried")
        [untried] = await find_event(harness.store, "untried")
        assert tried.next_retry_at is not None
        assert at(HOUR - 60) < tried.next_retry_at < at(HOUR + 60)
        assert (tried.status, untried.next_retry_at) == ("PENDING", None)
        await harness.store.destinations.report("orders", error=None, next_attempt=None)
        [tried] = await find_event(harness.store, "tried")
        assert tried.next_retry_at is None

    @needing("requests")
    async def test_an_override_is_visible_to_all(self, harness: StoreHarness) -> None:
        other = await harness.second_store()
        await harness.store.admin.requests.override("orders", paused=True, breaker="open", rate_limit=2.5, by="ann")
        wanted = AS_IT_COMES._replace(paused=True, breaker="open", rate_limit=2.5)
        assert await other.destinations.overrides() == [wanted]

    @needing("requests")
    async def test_unnamed_overrides_stay_and_none_clears_one(self, harness: StoreHarness) -> None:
        destinations = harness.store.destinations
        await harness.store.admin.requests.override("orders", rate_limit=10)
        await harness.store.admin.requests.override("orders", paused=True)
        await harness.store.admin.requests.override("orders", breaker="closed")
        assert await destinations.overrides() == [Override("orders", True, "closed", 10, None)]
        await harness.store.admin.requests.override("orders")
        await harness.store.admin.requests.override("orders", rate_limit=None)
        assert await destinations.overrides() == [Override("orders", True, "closed", None, None)]
        await harness.store.admin.requests.override("orders", breaker=None)
        await harness.store.admin.requests.override("orders", paused=False)
        assert await destinations.overrides() == []

    @needing("requests")
    async def test_reports_and_overrides_are_independent(self, harness: StoreHarness) -> None:
        destinations = harness.store.destinations
        await destinations.report("orders", error="down", next_attempt=5)
        await harness.store.admin.requests.override("orders", paused=True, rate_limit=3)
        await destinations.report("orders", error="still down", next_attempt=10)
        assert await destinations.overrides() == [Override("orders", True, None, 3, "still down")]
        await destinations.report("orders", error=None, next_attempt=None)
        assert await destinations.overrides() == [Override("orders", True, None, 3, None)]

    @needing("requests")
    async def test_destinations_are_sorted_by_name_and_include_everywhere(self, harness: StoreHarness) -> None:
        destinations = harness.store.destinations
        for name in ("b", "Z", EVERYWHERE, "a"):
            await harness.store.admin.requests.override(name, paused=True)
        assert [row.destination for row in await destinations.overrides()] == [EVERYWHERE, "Z", "a", "b"]

    @pytest.mark.parametrize(
        "override", [{"breaker": "ajar"}, {"rate_limit": 0}, {"rate_limit": -1}, {"rate_limit": float("nan")}]
    )
    async def test_an_invalid_override_is_rejected(self, harness: StoreHarness, override: dict[str, Any]) -> None:
        with pytest.raises(ConfigurationError):
            await harness.store.admin.requests.override("orders", paused=True, **override)
        assert await harness.store.destinations.overrides() == []
