"""What the admin reads and changes, through the functions of the console and the commands, under the user's name."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import quote, unquote

from pillarbox.admin.admin import AdminStore
from pillarbox.admin.dead_letters import DeadLetterPage
from pillarbox.admin.listing import EventDetail, EventPage, EventReport, ListedEvent
from pillarbox.core.errors import ConfigurationError
from pillarbox.integrations.django.configuration import load_settings
from pillarbox.ops import dead_letter_actions, operator_requests
from pillarbox.ops.bulk_actions import Scope
from pillarbox.ops.console import filters
from pillarbox.ops.console.masked_store import masked_store
from pillarbox.ops.console.masking import Masks
from pillarbox.ops.dead_letter_actions import DeadLetterAction, DeadLetterSelection
from pillarbox.ops.wiring import open_store

T = TypeVar("T")

EXAMPLES = 10
"""Rows that a confirmation names."""
COUNT_TIMEOUT = 30.0
"""Seconds that the selection of all matches may take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What an action applies to: chosen rows, or all matches of a filter."""

    chosen: tuple[str, ...] = ()
    """Keys of rows."""
    query: Mapping[str, str] | None = None
    """The filter of the list, for all matches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What an action would apply to: how many, and the first of them in words."""

    count: int
    examples: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of an action."""

    done: int
    requested: int
    skipped: int
    relay: bool = True
    """Whether a relay runs that can execute the requests."""


class EventRows:
    """Events: an action on a pending one is a request to the relay that owns it."""

    name, plural = "event", "events"

    @staticmethod
    def key(event: ListedEvent | EventDetail) -> str:
        """A row in a form: event id and destination."""
        return f"{quote(event.event_id, safe='')},{quote(event.destination, safe='')}"

    @staticmethod
    def named(key: str) -> tuple[str, str]:
        """The id of the object, and the row in words."""
        event_id, destination = _pair(key)
        return event_id, _in_words(event_id, destination)

    @staticmethod
    def page(query: Mapping[str, str]) -> EventPage:
        return run(lambda store: filters.event_page(store, query))

    @staticmethod
    def report(event_id: str) -> EventReport:
        return run(lambda store: store.admin.events.show(event_id))

    @staticmethod
    def preview(selection: Selection) -> Preview:
        async def work(store: AdminStore) -> Preview:
            pending = await _pending(store, selection)
            return Preview(count=len(pending), examples=[_in_words(*pair) for pair in pending.events[:EXAMPLES]])

        return run(work)

    @staticmethod
    def act(action: DeadLetterAction, selection: Selection, *, by: str) -> Outcome:
        async def work(store: AdminStore) -> Outcome:
            pending = await _pending(store, selection)
            ids = tuple(dict.fromkeys(event_id for event_id, _ in pending.events)) if selection.query is None else ()
            scope = Scope(wanted=filters.event_filter(selection.query or {}), event_ids=ids)
            requested = await operator_requests.request_all(store, action, pending, scope, by=by)
            relay = await operator_requests.has_running_relay(store)
            skipped = max(0, len(selection.chosen) - len(pending))
            return Outcome(done=0, requested=requested, skipped=skipped, relay=relay)

        return run(work)


class DeadLetterRows:
    """Dead letters: an action takes effect at once."""

    name, plural = "dead letter", "dead letters"

    @staticmethod
    def named(key: str) -> tuple[str, str]:
        """The id of the object, and the row in words."""
        return key, f"dead letter {key}"

    @staticmethod
    def page(query: Mapping[str, str]) -> DeadLetterPage:
        return run(lambda store: filters.dead_letter_page(store, query))

    @staticmethod
    def detail(number: int) -> EventDetail | None:
        found = run(lambda store: store.admin.dead_letters.details([number]))
        return found[0] if found else None

    @staticmethod
    def preview(selection: Selection) -> Preview:
        async def work(store: AdminStore) -> Preview:
            selected = await _dead(store, selection)
            shown = await store.admin.dead_letters.details(selected.dead_letters[:EXAMPLES])
            examples = [
                f"{one.event_type} {_in_words(one.event_id, one.destination)}: {one.last_error}" for one in shown
            ]
            examples += [_in_words(*pair) for pair in selected.blocked]
            return Preview(count=selected.count, examples=examples[:EXAMPLES])

        return run(work)

    @staticmethod
    def act(action: DeadLetterAction, selection: Selection, *, by: str) -> Outcome:
        async def work(store: AdminStore) -> Outcome:
            selected = await _dead(store, selection)
            done, requested = await dead_letter_actions.execute(store, action, selected, by=by)
            skipped = max(len(selected.dead_letters), len(selection.chosen)) - done
            relay = not requested or await operator_requests.has_running_relay(store)
            return Outcome(done=done, requested=requested, skipped=skipped, relay=relay)

        return run(work)


def run(work: Callable[[AdminStore], Awaitable[T]]) -> T:
    """Run `work` with the store of the settings, masked like the console's. Raises PillarboxError."""

    async def opened() -> T:
        settings = load_settings()
        store = open_store(settings.store, statement_timeout=settings.console.query_timeout)
        try:
            return await work(masked_store(store, Masks(settings.console.mask)))
        finally:
            await store.aclose()

    return asyncio.run(opened())


def masks() -> Masks:
    """The masking rules. Raises ConfigurationError."""
    return Masks(load_settings().console.mask)


async def _pending(store: AdminStore, selection: Selection) -> operator_requests.Pending:
    if selection.query is not None:
        wanted = filters.event_filter(selection.query)
        return await _in_time(operator_requests.select(store, wanted))
    chosen = [_pair(key) for key in selection.chosen]
    return await operator_requests.select_by_id(store, (event_id for event_id, _ in chosen), only=chosen)


async def _dead(store: AdminStore, selection: Selection) -> DeadLetterSelection:
    if selection.query is not None:
        wanted = filters.dead_letter_filter(selection.query)
        return await _in_time(dead_letter_actions.select(store, (), wanted))
    numbers = sorted({int(row) for row in selection.chosen if row.isdecimal() and len(row) < 19})
    found = await store.admin.dead_letters.details(numbers)
    ids = tuple(dict.fromkeys(detail.event_id for detail in found))
    scope = Scope(wanted=filters.dead_letter_filter({}), event_ids=ids)
    return DeadLetterSelection(
        dead_letters=sorted(one.dead_letter_id for one in found if one.dead_letter_id is not None),
        blocked=[],
        scope=scope,
    )


def _in_words(event_id: str, destination: str) -> str:
    return f"{event_id} → {destination}" if destination else event_id


def _pair(key: str) -> tuple[str, str]:
    event_id, _, destination = key.partition(",")
    return unquote(event_id), unquote(destination)


async def _in_time(selected: Awaitable[T]) -> T:
    try:
        return await asyncio.wait_for(selected, COUNT_TIMEOUT)
    except TimeoutError:
        raise ConfigurationError(
            f"it takes longer than {COUNT_TIMEOUT:g} s to find all matches: narrow the filter, or use the command line"
        ) from None
