"""Erase the events of one aggregate, such as a customer who asks for it: pending, delivered and dead-lettered ones, the
errors of their sends, and their lines in archive files.

Invariants: the audit entry is written before anything is deleted, and names the aggregate only by its type and a hash,
because an id may itself be personal data. A pending event belongs to the relay that owns its lane, so that the relay
deletes it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from pillarbox.admin.admin import AdminStore
from pillarbox.admin.listing import EventDetail, EventFilter, Position, join_aggregate, split_aggregate
from pillarbox.admin.states import EventState
from pillarbox.core.errors import ConfigurationError
from pillarbox.ops import operator_requests
from pillarbox.ops.selection_summary import digest_of

WHAT = "erase"
"""The action in the audit."""
PAGE = 1000
"""Events per statement while they are searched."""
BATCH = 500
"""Events that are deleted together."""
PASSES = 3
"""Searches at most: an event that was pending during the first may be delivered during the next."""
WAIT = 10.0
"""Seconds to wait for the relays to delete pending events; each search waits for its share."""
_POLL = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateEvents:
    """The stored events of one aggregate."""

    pending: Sequence[EventDetail] = ()
    history: Sequence[EventDetail] = ()
    dead_letters: Sequence[EventDetail] = ()

    def __len__(self) -> int:
        return len(self.pending) + len(self.history) + len(self.dead_letters)

    def counted(self) -> Erased:
        """How many there are."""
        return Erased(pending=len(self.pending), history=len(self.history), dead_letters=len(self.dead_letters))

    async def digest(self) -> str:
        """What identifies these events."""
        return await digest_of(self.event_ids)

    @property
    def event_ids(self) -> list[str]:
        return list(dict.fromkeys(one.event_id for one in (*self.pending, *self.history, *self.dead_letters)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Erased:
    """How many messages were erased."""

    pending: int = 0
    history: int = 0
    dead_letters: int = 0
    requested: int = 0
    """Messages that are left: pending ones that no relay has deleted yet, and those that were retried meanwhile."""


def check_aggregate(aggregate: str) -> tuple[str, str]:
    """Return type and id of the aggregate. Raises ConfigurationError unless both are given."""
    kind, one = split_aggregate(aggregate)
    if not (kind and one):
        raise ConfigurationError(
            f"{aggregate!r} is not one aggregate: write its type and its id, such as CUSTOMER:42; in the type, "
            "write \\: for a colon and \\\\ for a backslash"
        )
    return kind, one


def fingerprint_of(aggregate: str) -> str:
    """Return the hash by which the audit names an aggregate, however its type is escaped."""
    return sha256(join_aggregate(*check_aggregate(aggregate)).encode()).hexdigest()


async def find(store: AdminStore, aggregate: str) -> AggregateEvents:
    """Return all stored events of an aggregate, without payloads and headers. Raises ConfigurationError."""
    kind, one = check_aggregate(aggregate)
    after: Position | None = None
    ids: dict[str, None] = {}
    while True:
        page = await store.admin.events.list(EventFilter(aggregate=aggregate), limit=PAGE, after=after)
        ids |= dict.fromkeys(event.event_id for event in page.events)
        if (after := page.after) is None:
            break
    details: list[EventDetail] = []
    for event_id in ids:
        story = (await store.admin.events.show(event_id)).events
        # Without their content, which may be a gigabyte in all.
        stripped = (detail._replace(payload=b"", headers_json="{}") for detail in story)
        details += (each for each in stripped if (each.aggregate_type, each.aggregate_id) == (kind, one))
    return AggregateEvents(
        pending=[detail for detail in details if operator_requests.is_pending(detail)],
        history=[detail for detail in details if detail.state is EventState.PUBLISHED],
        dead_letters=[detail for detail in details if detail.dead_letter_id is not None],
    )


async def erase(store: AdminStore, aggregate: str, found: AggregateEvents, *, archived: int = 0, by: str) -> Erased:
    """Erase what was found, and what became of it meanwhile. archived: lines of archive files, for the audit."""
    kind, _ = check_aggregate(aggregate)
    detail = {
        "remaining": len(found),
        "aggregate_sha256": fingerprint_of(aggregate),
        "pending": len(found.pending),
        "history": len(found.history),
        "dead_letters": len(found.dead_letters),
        "archived": archived,
    }
    entry = await store.admin.audit.add(WHAT, kind, count=0, detail=detail, by=by)
    history = dead_letters = 0
    was_pending: dict[tuple[str, str], bool] = {}
    requested: set[tuple[str, str]] = set()
    for searches_left in reversed(range(PASSES + 1)):
        was_pending |= _states(found)
        history += await _erase_stored(store, found, entry)
        dead_letters += await _discard(store, found, entry, by=by)
        if found.pending and searches_left:
            missing = [pair for one in found.pending if (pair := (one.event_id, one.destination)) not in requested]
            await operator_requests.add(store, "discard", missing, by=by, bulk_action=entry)
            requested.update(missing)
            await _wait(store, found, until=time.monotonic() + WAIT / PASSES)
        # What was pending may be delivered or dead-lettered by now.
        found = await find(store, aggregate)
        if not found:
            break
    pending = _deleted(was_pending, left=_states(found))
    return Erased(pending=pending, history=history, dead_letters=dead_letters, requested=len(found))


def _states(found: AggregateEvents) -> dict[tuple[str, str], bool]:
    """Event id and destination → whether it is pending."""
    stored = {(one.event_id, one.destination): False for one in (*found.history, *found.dead_letters)}
    return stored | {(one.event_id, one.destination): True for one in found.pending}


def _deleted(was_pending: Mapping[tuple[str, str], bool], *, left: Container[tuple[str, str]]) -> int:
    """Count the pending messages that relays deleted: those that were erased in another state are counted there."""
    # A relay replaces a message without a destination by one for each destination.
    routed = {event_id for event_id, destination in was_pending if destination}
    return sum(
        pending and pair not in left and (bool(pair[1]) or pair[0] not in routed)
        for pair, pending in was_pending.items()
    )


async def _erase_stored(store: AdminStore, found: AggregateEvents, entry: int) -> int:
    """Delete delivered messages, and the failed sends of all events."""
    done = 0
    for batch in _batches(found.history):
        ids = [one.event_id for one in batch]
        done += await store.admin.archive.erase(batch, event_ids=ids, bulk_action=entry)
    await store.admin.archive.erase((), event_ids=found.event_ids, bulk_action=entry)
    return done


async def _discard(store: AdminStore, found: AggregateEvents, entry: int, *, by: str) -> int:
    done = 0
    for batch in _batches(found.dead_letters):
        numbers = [one.dead_letter_id for one in batch if one.dead_letter_id is not None]
        done += await store.admin.dead_letters.discard(numbers, by=by, bulk_action=entry)
    return done


async def _wait(store: AdminStore, found: AggregateEvents, *, until: float) -> None:
    """Wait until the relays have deleted the pending events, if any relay is running."""
    if not await operator_requests.has_running_relay(store):
        return
    ids = {one.event_id for one in found.pending}
    while time.monotonic() < until:
        stories = [(await store.admin.events.show(event_id)).events for event_id in ids]
        if not any(operator_requests.is_pending(one) for story in stories for one in story):
            return
        await asyncio.sleep(_POLL)


def _batches(rows: Sequence[EventDetail]) -> Iterator[Sequence[EventDetail]]:
    return (rows[start : start + BATCH] for start in range(0, len(rows), BATCH))
