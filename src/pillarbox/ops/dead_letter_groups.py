"""Group dead letters by reason: errors that differ only in an id, a time or an address are one group.

The fingerprint of a group is a hash of event type, destination and reason, without the parts of the error that vary. It
is stable across processes and releases, so that commands and URLs can use it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from hashlib import sha256
from typing import NamedTuple

from pillarbox.admin.admin import AdminStore
from pillarbox.admin.dead_letters import DeadLetterFilter, DeadLetterPage, ListedDeadLetter

PAGE = 1000
"""Dead letters per statement."""
CHOSEN = 5000
"""Dead letters per statement if only their numbers are kept."""

MOST_GROUPS = 10_000
"""The newest dead letters that are grouped, and so the most groups."""

DIGITS = 12
"""Hexadecimal digits of a fingerprint."""

_FINGERPRINT = re.compile(f"[0-9a-f]{{{DIGITS}}}")

# What is beyond is rarely the reason; cut before the work and once more after, so that lengths do not matter.
_LONGEST, _LONGEST_REASON = 1000, 200

_QUOTED = "|".join(
    # With escapes, or, where that finds no end, without.
    rf"{quote}[^{quote}\\\n]{{0,64}}+(?:\\.[^{quote}\\\n]{{0,64}}+){{0,16}}{quote}|{quote}[^{quote}\n]{{0,500}}+{quote}"
    for quote in "\"'`"
)

# What has to be in it for the pattern to be worth its time, the pattern, and what stands in its place. In this order:
# what comes first may hold what comes later.
#
# An error is whatever a handler or a broker says, so each pattern must take time proportional to the length of any
# text: no part may match the same text in two ways (`++`, `*+` and `{…}+` never go back), and where a match may begin
# at every character, what it can look at is bounded. Only single characters are repeated so: Python 3.11.2, which
# Debian ships, takes one character too many where a group is.
_CHANGING = tuple(
    (needed, re.compile(pattern, re.IGNORECASE), name)
    for needed, pattern, name in (
        # One that is closed: an apostrophe within a word is none.
        ("", rf"(?<!\w)(?:{_QUOTED})(?!\w)", "<text>"),
        ("://", r"\b[a-z][a-z0-9+.-]{0,30}+://\S++", "<address>"),
        ("@", r"[\w.+-]{1,64}+@[\w.-]{1,255}+", "<address>"),
        ("-", r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d++)?)?(?:Z|[+-]\d\d:?\d\d)?)?", "<time>"),
        ("-", r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "<id>"),
        (".", r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5}+)?\b", "<address>"),
        ("::", r"\[?(?<![\w:])(?:[0-9a-f]{0,4}:){2,7}[0-9a-f]{1,4}(?![\w:])\]?(?::\d{1,5}+)?", "<address>"),
        # The number after "file.py:" is a line, not a port.
        (":", r"\b(?:localhost|(?:[a-z0-9-]{1,63}+\.){1,9}(?!py:)[a-z][a-z0-9-]{0,62}+):\d{2,5}\b", "<address>"),
        ("0x", r"\b0x[0-9a-f]++\b", "<hex>"),
        ("", r"\b(?=[a-f]*+\d)(?=\d*+[a-f])[0-9a-f]{8,}+\b", "<hex>"),
        # A long word of characters and digits is another kind of id.
        ("", r"\b(?=[a-z]*+\d)(?=\d*+[a-z])[a-z0-9]{16,}+\b", "<id>"),
        ("", r"\d++(?:[.,:]\d++)*", "<n>"),
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterGroup:
    """Dead letters with the same reason."""

    fingerprint: str
    reason: str
    """The common part of their errors."""
    event_type: str
    destination: str
    count: int
    first_at: datetime
    last_at: datetime
    example: ListedDeadLetter
    """The newest of them."""


class Groups(NamedTuple):
    """Groups, the largest first."""

    groups: list[DeadLetterGroup]
    complete: bool
    """False: there are more dead letters than were read: the counts are lower bounds."""


async def groups(store: AdminStore, wanted: DeadLetterFilter, *, most: int = MOST_GROUPS) -> Groups:
    """The newest `most` matching dead letters, by reason; one query for each thousand of them."""
    found: dict[str, DeadLetterGroup] = {}
    before: int | None = None
    for start in range(0, most, PAGE):
        page = await store.admin.dead_letters.list(wanted, limit=min(PAGE, most - start), before=before)
        # In a thread, because a thousand long errors would block the event loop.
        await asyncio.to_thread(_add, found, page.dead_letters)
        if (before := page.before) is None:
            break
    largest_first = sorted(found.values(), key=lambda group: (group.count, group.last_at), reverse=True)
    return Groups(largest_first, complete=before is None)


async def dead_letters_of(
    store: AdminStore, wanted: DeadLetterFilter, group: str | None = None
) -> AsyncIterator[Sequence[ListedDeadLetter]]:
    """Yield all matching dead letters of the group in batches, the newest first; None: of all groups."""
    before: int | None = None
    while True:
        page = await store.admin.dead_letters.list(wanted, limit=CHOSEN, before=before)
        yield await members(page.dead_letters, group)
        if (before := page.before) is None:
            return


async def page_of(
    store: AdminStore, wanted: DeadLetterFilter, group: str, *, limit: int, before: int | None, queries: int
) -> DeadLetterPage:
    """Return a page of one group, the newest first, from at most `queries` statements of a thousand dead letters."""
    found: list[ListedDeadLetter] = []
    for _ in range(queries):
        page = await store.admin.dead_letters.list(wanted, limit=PAGE, before=before)
        found += await members(page.dead_letters, group)
        if len(found) > limit:
            return DeadLetterPage(found[:limit], found[limit - 1].id)
        if (before := page.before) is None:
            break
    return DeadLetterPage(found, before)


async def members(dead_letters: Sequence[ListedDeadLetter], group: str | None) -> Sequence[ListedDeadLetter]:
    """Return the dead letters of the group, computed in a thread; None: all of them."""
    if group is None:
        return dead_letters
    return await asyncio.to_thread(
        lambda: [dead_letter for dead_letter in dead_letters if group == _group_of(dead_letter)]
    )


def _group_of(dead_letter: ListedDeadLetter) -> str:
    return fingerprint(dead_letter.event_type, dead_letter.destination, dead_letter.error)


@lru_cache(maxsize=4096)
def fingerprint(event_type: str, destination: str, error: str) -> str:
    """Return the fingerprint of a dead letter's group: twelve hexadecimal digits."""
    # Types and destinations contain no NUL, so that the joined text is unique.
    return sha256("\0".join((event_type, destination, reason_of(error))).encode(errors="replace")).hexdigest()[:DIGITS]


def is_fingerprint(text: str) -> bool:
    """Whether the text has the form of a fingerprint."""
    return _FINGERPRINT.fullmatch(text) is not None


def reason_of(error: str) -> str:
    """Return an error without the parts that vary from event to event."""
    reason = error[:_LONGEST]
    for needed, pattern, name in _CHANGING:
        if needed in reason:
            reason = pattern.sub(name, reason)
    return " ".join(reason.split())[:_LONGEST_REASON]


def _add(found: dict[str, DeadLetterGroup], dead_letters: Sequence[ListedDeadLetter]) -> None:
    for dead_letter in dead_letters:
        name = _group_of(dead_letter)
        found[name] = _joined(found[name], dead_letter) if name in found else _alone(name, dead_letter)


def _alone(name: str, dead_letter: ListedDeadLetter) -> DeadLetterGroup:
    return DeadLetterGroup(
        fingerprint=name,
        reason=reason_of(dead_letter.error),
        event_type=dead_letter.event_type,
        destination=dead_letter.destination,
        count=1,
        first_at=dead_letter.dead_lettered_at,
        last_at=dead_letter.dead_lettered_at,
        example=dead_letter,
    )


def _joined(group: DeadLetterGroup, dead_letter: ListedDeadLetter) -> DeadLetterGroup:
    return replace(
        group,
        count=group.count + 1,
        first_at=min(group.first_at, dead_letter.dead_lettered_at),
        last_at=max(group.last_at, dead_letter.dead_lettered_at),
    )
