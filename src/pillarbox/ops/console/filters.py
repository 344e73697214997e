"""Filters from URLs. A URL holds the state of a page, so that it can be bookmarked and shared."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from datetime import datetime
from enum import StrEnum
from typing import TypeVar

from pillarbox.admin.admin import AdminStore
from pillarbox.admin.dead_letters import DeadLetterFilter, DeadLetterPage
from pillarbox.admin.listing import EventFilter, EventPage, Position
from pillarbox.admin.states import EventState
from pillarbox.core.errors import ConfigurationError
from pillarbox.core.message import Status
from pillarbox.ops import dead_letter_groups, times

E = TypeVar("E", bound=StrEnum)
T = TypeVar("T")

QUERIES = 5
"""Maximum number of queries for one page: without a fitting index a query may return a short page."""
PER_PAGE = 50
MAX_PER_PAGE = 500
"""Maximum number of rows of a page."""

EVENT_FIELDS = ("state", "status", "type", "key", "destination", "since", "until", "aggregate", "error")
DEAD_LETTER_FIELDS = ("id", "type", "key", "destination", "since", "error")


def event_filter(query: Mapping[str, str]) -> EventFilter:
    """Raises ConfigurationError."""
    return EventFilter(
        status=_member(Status, "status", query.get("status")),
        state=_member(EventState, "state", query.get("state")),
        event_type=query.get("type"),
        key=query.get("key"),
        destination=query.get("destination"),
        aggregate=query.get("aggregate"),
        since=moment(query.get("since")),
        until=moment(query.get("until")),
        error=query.get("error"),
    )


def _member(kind: type[E], name: str, text: str | None) -> E | None:
    """Raises ConfigurationError."""
    found = next((member for member in kind if text is not None and member.casefold() == text.casefold()), None)
    if text is not None and found is None:
        raise ConfigurationError(f"{name} {text!r} is unknown: use {', '.join(kind)}")
    return found


def dead_letter_filter(query: Mapping[str, str]) -> DeadLetterFilter:
    """Raises ConfigurationError."""
    return DeadLetterFilter(
        event_id=query.get("id"),
        event_type=query.get("type"),
        key=query.get("key"),
        destination=query.get("destination"),
        since=moment(query.get("since")),
        error=query.get("error"),
    )


def group_of(query: Mapping[str, str]) -> str | None:
    """Raises ConfigurationError."""
    group = query.get("group")
    if group is not None and not dead_letter_groups.is_fingerprint(group):
        raise ConfigurationError(f"{group!r} is not a group of dead letters: give twelve hexadecimal digits")
    return group


def given(query: Mapping[str, str], fields: tuple[str, ...]) -> dict[str, str]:
    """Return the filter fields of a URL, for links to the next page."""
    return {name: query[name] for name in fields if name in query}


def moment(text: str | None) -> datetime | None:
    """A time, or an age counted back from now. Raises ConfigurationError."""
    return None if text is None else times.parse_time(text)


def whole(text: str | None, name: str, *, default: int, most: int) -> int:
    """Raises ConfigurationError."""
    if text is None:
        return default
    if not text.isdecimal() or len(text) > 19 or not 1 <= int(text) <= most:
        raise ConfigurationError(f"{name} {text!r} is not a number from 1 to {most}")
    return int(text)


async def event_page(store: AdminStore, query: Mapping[str, str]) -> EventPage:
    """A page of events, from a bounded number of statements. Raises ConfigurationError."""
    wanted, limit = event_filter(query), whole(query.get("limit"), "limit", default=PER_PAGE, most=MAX_PER_PAGE)
    after = Position.parse(query["after"]) if "after" in query else None
    page = await store.admin.events.list(wanted, limit=limit, after=after)
    for _ in range(QUERIES - 1):
        if page.after is None or len(page.events) >= limit:
            break
        more = await store.admin.events.list(wanted, limit=limit - len(page.events), after=page.after)
        page = EventPage(page.events + more.events, more.after)
    return page


async def dead_letter_page(store: AdminStore, query: Mapping[str, str]) -> DeadLetterPage:
    """A page of dead letters, from a bounded number of statements. Raises ConfigurationError."""
    wanted, limit = dead_letter_filter(query), whole(query.get("limit"), "limit", default=PER_PAGE, most=MAX_PER_PAGE)
    before = whole(query["after"], "after", default=0, most=2**63 - 1) if "after" in query else None
    if (group := group_of(query)) is not None:
        return await dead_letter_groups.page_of(store, wanted, group, limit=limit, before=before, queries=QUERIES)
    page = await store.admin.dead_letters.list(wanted, limit=limit, before=before)
    for _ in range(QUERIES - 1):
        if page.before is None or len(page.dead_letters) >= limit:
            break
        more = await store.admin.dead_letters.list(wanted, limit=limit - len(page.dead_letters), before=page.before)
        page = DeadLetterPage(page.dead_letters + more.dead_letters, more.before)
    return page


async def found_or(nothing: T, search: Awaitable[T]) -> tuple[T, str]:
    """Return the result of `search`; or `nothing` and the error text of a wrong filter."""
    try:
        return await search, ""
    except ConfigurationError as error:
        return nothing, str(error)
