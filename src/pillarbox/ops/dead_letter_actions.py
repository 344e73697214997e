"""Retry or discard dead letters and blocked events: select and count them, then process exactly those."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, replace
from typing import Literal

from pillarbox.admin.admin import AdminStore
from pillarbox.admin.dead_letters import DeadLetterFilter
from pillarbox.admin.listing import EventDetail, EventFilter, ListedEvent
from pillarbox.core.message import Status
from pillarbox.ops import bulk_actions, operator_requests
from pillarbox.ops.bulk_actions import Scope
from pillarbox.ops.dead_letter_groups import dead_letters_of

DeadLetterAction = Literal["retry", "discard"]

BATCH = 1000
"""Dead letters per statement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterSelection:
    """The dead letters and blocked events that an action applies to."""

    dead_letters: list[int]
    """Numbers of dead letters, the oldest first."""
    blocked: list[tuple[str, str]]
    """Blocked events, as event id and destination."""
    scope: Scope

    @property
    def count(self) -> int:
        return len(self.dead_letters) + len(self.blocked)


async def select(
    store: AdminStore, event_ids: Iterable[str], wanted: DeadLetterFilter, *, group: str | None = None
) -> DeadLetterSelection:
    """Select all matching dead letters and blocked events, page by page; only of these events, if any are named.

    A group consists of dead letters only, so that it does not include blocked events.
    """
    dead_letters: list[int] = []
    blocked: list[tuple[str, str]] = []
    if named := tuple(dict.fromkeys(event_ids)):
        for event_id in named:
            dead_letters += [
                number async for number in dead_letters_of(store, replace(wanted, event_id=event_id), group)
            ]
            blocked += [pair async for pair in _blocked_of(store, event_id, wanted)]
    else:
        dead_letters += [number async for number in dead_letters_of(store, wanted, group)]
        blocked += [pair async for pair in _blocked(store, wanted)]
    scope = Scope(wanted=wanted, event_ids=named, group=group)
    return DeadLetterSelection(dead_letters=sorted(dead_letters), blocked=blocked if group is None else [], scope=scope)


async def execute(
    store: AdminStore, action: DeadLetterAction, selection: DeadLetterSelection, *, by: str
) -> tuple[int, int]:
    """Process the selection, the oldest first, in batches; returns the processed dead letters and the new requests."""
    run = store.admin.dead_letters.retry if action == "retry" else store.admin.dead_letters.discard
    many = selection.count > 1
    bulk_action = (
        await bulk_actions.begin(store, action, selection.scope, count=selection.count, by=by) if many else None
    )
    done = 0
    for start in range(0, len(selection.dead_letters), BATCH):
        done += await run(selection.dead_letters[start : start + BATCH], by=by, bulk_action=bulk_action)
    return done, await operator_requests.add(store, action, selection.blocked, by=by, bulk_action=bulk_action)


async def _blocked(store: AdminStore, wanted: DeadLetterFilter) -> AsyncIterator[tuple[str, str]]:
    like = EventFilter(event_type=wanted.event_type, key=wanted.key, destination=wanted.destination, blocked=True)
    after = None
    while True:
        page = await store.admin.events.list(like, limit=BATCH, after=after)
        for event in page.events:
            if _matches(event, wanted):
                yield event.event_id, event.destination
        if (after := page.after) is None:
            return


async def _blocked_of(store: AdminStore, event_id: str, wanted: DeadLetterFilter) -> AsyncIterator[tuple[str, str]]:
    for event in (await store.admin.events.show(event_id)).events:
        if event.status is Status.FAILED and event.dead_letter_id is None and _matches(event, wanted):
            yield event.event_id, event.destination


def _matches(event: ListedEvent | EventDetail, wanted: DeadLetterFilter) -> bool:
    return (
        wanted.event_type in (None, event.event_type)
        and wanted.key in (None, event.key)
        and wanted.destination in (None, event.destination)
        and (wanted.since is None or (event.last_attempt_at is not None and event.last_attempt_at >= wanted.since))
        and (wanted.error is None or wanted.error in (event.last_error or ""))
    )
