"""Dead letters as lines of JSON: every one that fits, in bounded memory however many there are."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

from pillarbox.admin.admin import AdminStore
from pillarbox.admin.dead_letters import DeadLetterFilter, ListedDeadLetter
from pillarbox.admin.listing import EventDetail
from pillarbox.core.text import safe_json
from pillarbox.ops import exports
from pillarbox.ops.grouping import members

PAGE = 500
"""Dead letters per statement."""
BITE = 8
"""Dead letters per statement that brings their content: so many payloads are in memory at once, 1 MiB each by default
and never more than 64."""

Content = Callable[[EventDetail], dict[str, Any]]
Hide = Callable[[dict[str, Any]], dict[str, Any]]


async def lines(
    store: AdminStore, wanted: DeadLetterFilter, content: Content | None, *, group: str | None = None, hide: Hide = dict
) -> AsyncIterator[str]:
    """A line for each, the newest first, with what `content` tells of what it carries; None: nothing. hide: takes out
    what nobody may see of a line."""
    before: int | None = None
    while True:
        page = await store.admin.dead_letters.list(wanted, limit=PAGE, before=before)
        letters = await members(page.letters, group)
        for start in range(0, len(letters), BITE):
            bite = letters[start : start + BITE]
            details = {} if content is None else await _details(store, bite)
            # On a thread: rules search whole payloads, and the event loop has others to serve.
            for line in await asyncio.to_thread(_written, bite, details, content, hide):
                yield line
        if (before := page.before) is None:
            return


async def _details(store: AdminStore, letters: Sequence[ListedDeadLetter]) -> dict[int | None, EventDetail]:
    """By the number of the letter; without those that were sent again or dropped meanwhile."""
    return {
        detail.letter: detail for detail in await store.admin.dead_letters.details([letter.id for letter in letters])
    }


def _written(
    letters: Sequence[ListedDeadLetter], details: Mapping[int | None, EventDetail], content: Content | None, hide: Hide
) -> list[str]:
    if content is None:
        told = [exports.listed_letter(letter) for letter in letters]
    else:
        kept = [letter for letter in letters if letter.id in details]
        told = [exports.listed_letter(letter) | content(details[letter.id]) for letter in kept]
    return [safe_json(hide(letter)) + "\n" for letter in told]
