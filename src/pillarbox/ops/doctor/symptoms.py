"""What people complain of: events wait, are tried again and again, were given up on; each with its commonest cause."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from pillarbox.admin.admin import AdminStore
from pillarbox.admin.dead_letters import DeadLetterFilter
from pillarbox.admin.diagnosis import LOOKED_AT, MANY_TRIES, Answer, Check, failed, passed, reason, warned
from pillarbox.admin.keys import SAMPLE
from pillarbox.admin.overview import Overview
from pillarbox.core.statistics import COUNTED
from pillarbox.core.store import EVERYWHERE
from pillarbox.core.text import noun, plural
from pillarbox.ops.flow import DestinationView, destinations_of
from pillarbox.ops.grouping import groups
from pillarbox.ops.hot_keys import advice, find_limited
from pillarbox.ops.settings import Settings

LONG_WAIT = 300.0
"""Seconds that an event may wait before that is worth a word."""
MANY_CRASHES = 3
LETTERS = 1_000
"""Dead letters that are looked at, the newest."""
_REASONS = 3
_WHO = "ask whoever did it (`pillarbox audit list --what steer`)"


def checks(settings: Settings, store: AdminStore) -> Sequence[Check]:
    return [
        Check(name="symptoms.relays", ask=partial(_relays, settings, store)),
        Check(name="symptoms.lanes", ask=partial(_lanes, store)),
        Check(name="symptoms.destinations", ask=partial(_destinations, store)),
        Check(name="symptoms.backlog", ask=partial(_backlog, store)),
        Check(name="symptoms.tries", ask=partial(_tries, store)),
        Check(name="symptoms.blocked", ask=partial(_blocked, store)),
        Check(name="symptoms.hot_keys", ask=partial(_hot_keys, settings, store)),
        Check(name="symptoms.dead", ask=partial(_dead, store)),
    ]


async def _relays(settings: Settings, store: AdminStore) -> Answer:
    seen = await store.admin.inspection.overview()
    alive = [relay.name or relay.id for relay in seen.relays if relay.lease > 0]
    if stalled := [relay for relay in seen.relays if relay.lease > 0 and relay.stalled]:
        told = "; ".join(f"{relay.name or relay.id}: {relay.stalled}" for relay in stalled)
        return failed(
            f"alive, but without progress although it could: {told}",
            "do what it says; if it stays so, restart the relay: another one takes its lanes and nothing is lost",
        )
    if alive:
        return passed(f"at work: {', '.join(alive)}")
    said, fix = "no relay is alive", "start one: `pillarbox relay`"
    if not settings.relay.config.enabled:
        called = settings.called("relay", "enabled")
        said, fix = f"no relay is alive, and {called} is false here", f"set {called} to true and start one"
    if seen.backlog:
        return failed(f"{plural(seen.backlog, 'event waits', 'events wait', most=COUNTED)}, and {said}", fix)
    return warned(f"nothing waits, and {said}", fix)


async def _lanes(store: AdminStore) -> Answer:
    seen = await store.admin.inspection.overview()
    crashed = [lane for lane in seen.lanes if lane.crashes >= MANY_CRASHES]
    if crashed:
        return failed(
            f"lane {', '.join(str(lane.lane) for lane in crashed)}: relays that had it died again and again",
            "a message kills them: see the last lines of their logs; it is found out and given up by itself",
        )
    alive = {relay.id for relay in seen.relays if relay.lease > 0}
    orphans = sum(lane.owner not in alive for lane in seen.lanes)
    if alive and orphans:
        return warned(
            f"{orphans} of {plural(len(seen.lanes), 'lane')} {noun(orphans, 'has', 'have')} no living owner",
            "wait for the lease of whoever died (15 s); if it stays so, see the relays' logs",
        )
    return passed("no lane is left alone by the relays there are")


async def _destinations(store: AdminStore) -> Answer:
    steering = await store.destinations.overrides()
    seen: Overview = await store.admin.inspection.overview()
    if any(row.destination == EVERYWHERE and row.paused for row in steering):
        return warned("a person paused every destination", f"{_WHO}, then `pillarbox destinations resume`")
    destinations = destinations_of(seen.relays, steering)
    failing = [one for one in destinations if one.fails or not (one.takes or one.forced)]
    if failing:
        told = "; ".join(f"{_state(one)}: {reason(one.last_error or 'no error noted')}" for one in failing)
        return failed(f"takes nothing: {told}", "mend the place itself; relays try it from time to time and go on")
    if held := [one for one in destinations if one.forced]:
        return warned(
            f"held by a person: {', '.join(_state(one) for one in held)}",
            f"{_WHO}, then `pillarbox destinations resume NAME`, or `pillarbox destinations breaker NAME auto`",
        )
    return passed("every destination takes messages, as far as anybody knows")


def _state(one: DestinationView) -> str:
    return f"{one.name} ({'held ' if one.fails else ''}{one.state})"


async def _backlog(store: AdminStore) -> Answer:
    seen = await store.admin.inspection.overview()
    if seen.oldest is None:
        return passed("nothing waits that could have left")
    said = f"{plural(seen.backlog, 'waits', 'wait', most=COUNTED)}, the oldest for {seen.oldest:.0f} s"
    if seen.oldest > LONG_WAIT:
        return warned(
            said,
            "see the other symptoms; `pillarbox events list --retrying` shows what waits, tuning makes it faster",
        )
    return passed(said)


async def _tries(store: AdminStore) -> Answer:
    tried = await store.diagnosis.tried(MANY_TRIES)
    if tried.messages:
        were = noun(tried.messages, "was", "were")
        return warned(
            f"{tried.messages} of the first {LOOKED_AT:,} that wait {were} tried more than {MANY_TRIES} times; most "
            f"often: {tried.error or 'no error noted'}",
            f"`pillarbox events show {tried.example}` tells whether the place or the event is at fault",
        )
    return passed(f"nothing was tried more than {MANY_TRIES} times")


async def _blocked(store: AdminStore) -> Answer:
    if blocked := [key for key in await store.admin.keys.blocked(limit=_REASONS) if key.next_try is None]:
        told = "; ".join(f"{one.key or one.event_id}: {reason(one.error or '', one.event_id)}" for one in blocked)
        return warned(
            f"keys stand still until a person decides: {told}",
            f"`pillarbox dead retry {blocked[0].event_id}` once it is mended, or `pillarbox dead discard` it",
        )
    return passed("no key is held by an event that was given up")


async def _hot_keys(settings: Settings, store: AdminStore) -> Answer:
    limited = await find_limited(store, await store.admin.keys.hot(limit=1))
    if limited is not None and (fix := advice(settings)):
        return warned(
            f"{limited.waiting:,} of the first {SAMPLE:,} events that wait have the key {reason(limited.key)}", fix
        )
    return passed("no key has so many events that they wait for one another")


async def _dead(store: AdminStore) -> Answer:
    found = await groups(store, DeadLetterFilter(), most=LETTERS)
    if not found.groups:
        return passed("nothing was given up on")
    told = "; ".join(
        f"{group.count} x {group.event_type} to {group.destination or 'nowhere yet'}: {reason(group.reason)}"
        for group in found.groups[:_REASONS]
    )
    more = "" if found.whole else f" of the newest {LETTERS:,}"
    return warned(
        f"dead letters{more}: {told}",
        f"`pillarbox dead groups` shows all; mend the cause, then `pillarbox dead retry --group "
        f"{found.groups[0].fingerprint}` and so on",
    )
