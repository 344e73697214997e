"""Check for symptoms: pending, retried and dead-lettered events, each with its most frequent cause."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from pillarbox.admin.admin import AdminStore
from pillarbox.admin.dead_letters import DeadLetterFilter
from pillarbox.admin.diagnosis import EXAMINED, MANY_ATTEMPTS, Check, CheckResult, failed, passed, reason, warned
from pillarbox.admin.keys import SAMPLED
from pillarbox.core.statistics import COUNTED
from pillarbox.core.text import noun, plural
from pillarbox.ops import blocked_keys
from pillarbox.ops.busiest_keys import MANY_PENDING, advice, find_limited
from pillarbox.ops.dead_letter_groups import groups
from pillarbox.ops.health import DestinationView, take_snapshot
from pillarbox.ops.settings import Settings

LONG_WAIT = 300.0
"""Seconds that an event may be pending before the check warns."""
MANY_CRASHES = 3
NEWEST = 1_000
"""The newest dead letters and the newest blocked keys, which the checks read."""
_REASONS = 3
_WHO = "ask the operator who did it (`pillarbox audit list --what override`)"


def checks(settings: Settings, store: AdminStore) -> Sequence[Check]:
    return [
        Check(name="symptoms.relays", ask=partial(_relays, settings, store)),
        Check(name="symptoms.lanes", ask=partial(_lanes, store)),
        Check(name="symptoms.destinations", ask=partial(_destinations, store)),
        Check(name="symptoms.backlog", ask=partial(_backlog, store)),
        Check(name="symptoms.attempts", ask=partial(_attempts, store)),
        Check(name="symptoms.blocked", ask=partial(_blocked, store)),
        Check(name="symptoms.busiest_keys", ask=partial(_busiest_keys, settings, store)),
        Check(name="symptoms.dead", ask=partial(_dead, store)),
    ]


async def _relays(settings: Settings, store: AdminStore) -> CheckResult:
    seen = await store.admin.inspection.overview()
    running = [relay.name or relay.id for relay in seen.relays if relay.lease > 0]
    if stalled := [relay for relay in seen.relays if relay.lease > 0 and relay.stalled]:
        told = "; ".join(f"{relay.name or relay.id}: {relay.stalled}" for relay in stalled)
        return failed(
            f"running, but without progress: {told}",
            "remove the cause; if it persists, restart the relay: another one acquires its lanes, no event is lost",
        )
    if running:
        return passed(f"running: {', '.join(running)}")
    said, fix = "no relay is running", "start one: `pillarbox relay`"
    if not settings.relay.config.enabled:
        called = settings.called("relay", "enabled")
        said, fix = f"no relay is running, and {called} is false here", f"set {called} to true and start one"
    if seen.backlog:
        pending = plural(seen.backlog, "event is pending", "events are pending", limit=COUNTED)
        return failed(f"{pending}, and {said}", fix)
    return warned(f"no event is pending, and {said}", fix)


async def _lanes(store: AdminStore) -> CheckResult:
    seen = await store.admin.inspection.overview()
    crashed = [lane for lane in seen.lanes if lane.crashes >= MANY_CRASHES]
    if crashed:
        return failed(
            f"lane {', '.join(str(lane.lane) for lane in crashed)}: its owners crashed {MANY_CRASHES} times or more",
            "an event crashes them: see the end of their logs; the crash guard finds the event and dead-letters it",
        )
    running = {relay.id for relay in seen.relays if relay.lease > 0}
    unowned = sum(lane.owner not in running for lane in seen.lanes)
    if running and unowned:
        return warned(
            f"{unowned} of {plural(len(seen.lanes), 'lane')} {noun(unowned, 'has', 'have')} no running owner",
            "wait until the lease of the crashed relay ends (relay.lease); if it persists, see the logs of the relays",
        )
    return passed("every lane has a running owner, or no relay is running")


async def _destinations(store: AdminStore) -> CheckResult:
    health = await take_snapshot(store)
    if health.paused:
        return warned("every destination is paused by an operator", f"{_WHO}, then `pillarbox destinations resume`")
    failing = [one for one in health.destinations if one.fails or not (one.is_available or one.forced)]
    if failing:
        told = "; ".join(f"{_state(one)}: {reason(one.last_error or 'no error recorded')}" for one in failing)
        return failed(f"unavailable: {told}", "repair the destination; relays probe it and then resume by themselves")
    if overridden := [one for one in health.destinations if one.forced]:
        return warned(
            f"overridden by an operator: {', '.join(_state(one) for one in overridden)}",
            f"{_WHO}, then `pillarbox destinations resume NAME`, or `pillarbox destinations breaker NAME auto`",
        )
    return passed("no destination is known to be unavailable")


def _state(one: DestinationView) -> str:
    return f"{one.name} ({'forced ' if one.fails else ''}{one.send_state})"


async def _backlog(store: AdminStore) -> CheckResult:
    seen = await store.admin.inspection.overview()
    if seen.oldest is None:
        return passed("no event is pending that could have been sent")
    said = f"{plural(seen.backlog, 'event', limit=COUNTED)} pending, the oldest for {seen.oldest:.0f} s"
    if seen.oldest > LONG_WAIT:
        return warned(
            said,
            "see the other symptoms; `pillarbox events list --state retrying` lists events that wait for a retry",
        )
    return passed(said)


async def _attempts(store: AdminStore) -> CheckResult:
    tried = await store.diagnosis.retried(MANY_ATTEMPTS)
    if tried.messages:
        were = noun(tried.messages, "was", "were")
        return warned(
            f"{tried.messages} of the first {EXAMINED:,} pending events {were} sent more than {MANY_ATTEMPTS} times, "
            f"most often: {tried.error or 'no error recorded'}",
            f"`pillarbox events show {tried.example}` shows whether the destination or the event is the cause",
        )
    return passed(f"no event was sent more than {MANY_ATTEMPTS} times")


async def _blocked(store: AdminStore) -> CheckResult:
    found = await blocked_keys.groups(store, most=NEWEST)
    if not found.groups:
        return passed("no key is blocked")
    told = "; ".join(
        f"{group.keys} x {group.event_type} to {group.destination or '(no route yet)'}: {reason(group.reason)}"
        for group in found.groups[:_REASONS]
    )
    more = "" if found.complete else f", of the newest {NEWEST:,}"
    return warned(
        f"keys are blocked{more}: {told}",
        f"`pillarbox keys groups` lists all; fix the cause, then retry each group: `pillarbox keys retry --group "
        f"{found.groups[0].fingerprint}`; or skip or discard it",
    )


async def _busiest_keys(settings: Settings, store: AdminStore) -> CheckResult:
    limited = await find_limited(store, await store.admin.keys.busiest(limit=1))
    if limited is not None and (fix := advice(settings)):
        return warned(
            f"{limited.pending:,} of the first {SAMPLED:,} pending events have the key {reason(limited.key)}", fix
        )
    return passed(f"no key has {MANY_PENDING:,} or more pending events that only wait for each other")


async def _dead(store: AdminStore) -> CheckResult:
    found = await groups(store, DeadLetterFilter(), most=NEWEST)
    if not found.groups:
        return passed("there are no dead letters")
    told = "; ".join(
        f"{group.count} x {group.event_type} to {group.destination or '(no route yet)'}: {reason(group.reason)}"
        for group in found.groups[:_REASONS]
    )
    more = "" if found.complete else f" of the newest {NEWEST:,}"
    return warned(
        f"dead letters{more}: {told}",
        f"`pillarbox dead groups` lists all; fix the cause, then retry each group: `pillarbox dead retry --group "
        f"{found.groups[0].fingerprint}`",
    )
