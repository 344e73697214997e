"""Blocked keys by reason, and what an operator does about many of them at once: the same for the command line, the
console and the API.

    retry      send the blocking event again
    skip       dead-letter the blocking event; the key continues with the next one
    discard    delete the blocking event; the key continues with the next one
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, Literal, NamedTuple, get_args

from pillarbox.admin.admin import AdminStore
from pillarbox.admin.listing import EventFilter, ListedEvent, Position
from pillarbox.admin.requests import Action
from pillarbox.admin.states import EventState
from pillarbox.core.errors import ConfigurationError
from pillarbox.ops import holding_events, operator_requests
from pillarbox.ops.bulk_actions import Scope
from pillarbox.ops.dead_letter_groups import MOST_GROUPS, fingerprint, reason_of
from pillarbox.ops.operator_requests import Pending

KeyAction = Literal["retry", "skip", "discard"]

_REQUESTS: Final[dict[KeyAction, Action]] = {"retry": "retry", "skip": "dead_letter", "discard": "discard"}
PAGE = 1000
"""Blocked events per statement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockedGroup:
    """Blocked keys whose blocking events have one type, destination and reason."""

    fingerprint: str
    reason: str
    event_type: str
    destination: str
    keys: int
    first_at: datetime
    last_at: datetime
    example: ListedEvent
    """The newest blocking event."""


class BlockedGroups(NamedTuple):
    """Groups, the largest first."""

    groups: list[BlockedGroup]
    complete: bool
    """False: more keys are blocked than were read: the counts are lower bounds."""


async def groups(store: AdminStore, *, most: int = MOST_GROUPS) -> BlockedGroups:
    """Group the newest `most` blocked keys by reason."""
    found: dict[str, BlockedGroup] = {}
    after: Position | None = None
    for start in range(0, most, PAGE):
        wanted = EventFilter(state=EventState.BLOCKED)
        page = await store.admin.events.list(wanted, limit=min(PAGE, most - start), after=after)
        await asyncio.to_thread(_add, found, page.events)
        if (after := page.after) is None:
            break
    largest_first = sorted(found.values(), key=lambda group: (group.keys, group.last_at), reverse=True)
    return BlockedGroups(largest_first, complete=after is None)


async def select(store: AdminStore, wanted: EventFilter, *, group: str | None = None) -> Pending:
    """Return all matching events that block their keys."""
    return await operator_requests.select(store, replace(wanted, state=EventState.BLOCKED), group=group)


async def select_by_id(store: AdminStore, event_ids: Iterable[str]) -> Pending:
    """Return those of these events that hold their keys back, also those that wait for a retry."""
    found = [pair for event_id in dict.fromkeys(event_ids) for pair in await holding_events.find(store, event_id)]
    return await operator_requests.select_by_id(store, dict.fromkeys(event_id for event_id, _ in found), only=found)


async def execute(
    store: AdminStore,
    action: KeyAction,
    pending: Pending,
    *,
    wanted: EventFilter,
    event_ids: Iterable[str] = (),
    group: str | None = None,
    by: str,
) -> int:
    """Ask the relays that own the lanes; several events are one bulk action. Returns the number of requests."""
    scope = Scope(wanted=replace(wanted, state=EventState.BLOCKED), event_ids=tuple(event_ids), group=group)
    return await operator_requests.request_all(store, _REQUESTS[action], pending, scope, by=by)


def key_action_of(text: str) -> KeyAction:
    """Raises ConfigurationError."""
    found: KeyAction | None = next((action for action in get_args(KeyAction) if action == text), None)
    if found is None:
        raise ConfigurationError(f"unknown action {text!r}: use retry, skip or discard")
    return found


def _add(found: dict[str, BlockedGroup], events: Iterable[ListedEvent]) -> None:
    for event in events:
        error, since = event.last_error or "", event.last_attempt_at or event.recorded_at
        name = fingerprint(event.event_type, event.destination, error)
        known = found.get(name)
        found[name] = (
            replace(known, keys=known.keys + 1, first_at=min(known.first_at, since), last_at=max(known.last_at, since))
            if known
            else BlockedGroup(
                fingerprint=name,
                reason=reason_of(error),
                event_type=event.event_type,
                destination=event.destination,
                keys=1,
                first_at=since,
                last_at=since,
                example=event,
            )
        )
