"""Retry or discard dead letters and blocked events: select and count them, then process exactly those."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, replace
from typing import Literal

from pillarbox.admin.admin import AdminStore
from pillarbox.admin.dead_letters import DeadLetterFilter
from pillarbox.admin.listing import EventDetail, EventFilter, ListedEvent
from pillarbox.admin.states import EventState
from pillarbox.ops import bulk_actions, operator_requests
from pillarbox.ops.bulk_actions import Scope
from pillarbox.ops.dead_letter_groups import dead_letters_of
from pillarbox.ops.selection_summary import NOTHING_SELECTED, Summary, SummaryBuilder, digest_of

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
    summary: Summary = NOTHING_SELECTED
    """What they are, for a confirmation."""

    @property
    def count(self) -> int:
        return len(self.dead_letters) + len(self.blocked)

    async def digest(self) -> str:
        """What identifies these dead letters and events."""
        return await digest_of([*self.dead_letters, *self.blocked])


async def select(
    store: AdminStore, event_ids: Iterable[str], wanted: DeadLetterFilter, *, group: str | None = None
) -> DeadLetterSelection:
    """Select all matching dead letters and blocked events, page by page; only of these events, if any are named.

    A group consists of dead letters only, so that it does not include blocked events.
    """
    dead_letters: list[int] = []
    blocked: list[tuple[str, str]] = []
    built = SummaryBuilder()
    named = tuple(dict.fromkeys(event_ids))
    for one in [replace(wanted, event_id=event_id) for event_id in named] or [wanted]:
        async for batch in dead_letters_of(store, one, group):
            dead_letters += [dead_letter.id for dead_letter in batch]
            await built.add([(dead_letter, dead_letter.error) for dead_letter in batch])
    if group is None:
        found: list[ListedEvent | EventDetail] = [
            event for event_id in named for event in await _blocked_of(store, event_id, wanted)
        ]
        found += [] if named else [event async for event in _blocked(store, wanted)]
        blocked = [(event.event_id, event.destination) for event in found]
        await built.add([(event, event.last_error) for event in found])
    return DeadLetterSelection(
        dead_letters=sorted(dead_letters),
        blocked=blocked,
        scope=Scope(wanted=wanted, event_ids=named, group=group),
        summary=built.summary(),
    )


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


async def _blocked(store: AdminStore, wanted: DeadLetterFilter) -> AsyncIterator[ListedEvent]:
    like = EventFilter(
        event_type=wanted.event_type, key=wanted.key, destination=wanted.destination, state=EventState.BLOCKED
    )
    after = None
    while True:
        page = await store.admin.events.list(like, limit=BATCH, after=after)
        for event in page.events:
            if _matches(event, wanted):
                yield event
        if (after := page.after) is None:
            return


async def _blocked_of(store: AdminStore, event_id: str, wanted: DeadLetterFilter) -> list[EventDetail]:
    found = (await store.admin.events.show(event_id)).events
    return [event for event in found if event.state is EventState.BLOCKED and _matches(event, wanted)]


def _matches(event: ListedEvent | EventDetail, wanted: DeadLetterFilter) -> bool:
    return (
        wanted.event_type in (None, event.event_type)
        and wanted.key in (None, event.key)
        and wanted.destination in (None, event.destination)
        and (wanted.since is None or (event.last_attempt_at is not None and event.last_attempt_at >= wanted.since))
        and (wanted.error is None or wanted.error in (event.last_error or ""))
    )
