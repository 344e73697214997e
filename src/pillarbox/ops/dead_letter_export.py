"""Export all matching dead letters as lines of JSON, in bounded memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

from pillarbox.admin.admin import AdminStore
from pillarbox.admin.dead_letters import DeadLetterFilter, ListedDeadLetter
from pillarbox.admin.listing import EventDetail
from pillarbox.core.text import safe_json
from pillarbox.ops import exports
from pillarbox.ops.dead_letter_groups import members

PAGE = 500
"""Dead letters per statement."""
BATCH = 8
"""Dead letters per statement that reads payloads: this many are in memory at once, of 1 MiB each by default and at most
64 MiB."""

Content = Callable[[EventDetail], dict[str, Any]]
Hide = Callable[[dict[str, Any]], dict[str, Any]]


async def lines(
    store: AdminStore, wanted: DeadLetterFilter, content: Content | None, *, group: str | None = None, hide: Hide = dict
) -> AsyncIterator[str]:
    """Yield one line per dead letter, the newest first.

    content: returns the payload fields of an event; None: no payload. hide: masks a line before it is written.
    """
    before: int | None = None
    while True:
        page = await store.admin.dead_letters.list(wanted, limit=PAGE, before=before)
        dead_letters = await members(page.dead_letters, group)
        for start in range(0, len(dead_letters), BATCH):
            batch = dead_letters[start : start + BATCH]
            details = {} if content is None else await _details(store, batch)
            # In a thread, because masking searches whole payloads and would block the event loop.
            for line in await asyncio.to_thread(_written, batch, details, content, hide):
                yield line
        if (before := page.before) is None:
            return


async def _details(store: AdminStore, dead_letters: Sequence[ListedDeadLetter]) -> dict[int | None, EventDetail]:
    """Return details by number, without dead letters that were retried or deleted in the meantime."""
    return {
        detail.dead_letter_id: detail
        for detail in await store.admin.dead_letters.details([dead_letter.id for dead_letter in dead_letters])
    }


def _written(
    dead_letters: Sequence[ListedDeadLetter],
    details: Mapping[int | None, EventDetail],
    content: Content | None,
    hide: Hide,
) -> list[str]:
    if content is None:
        records = [exports.listed_dead_letter(dead_letter) for dead_letter in dead_letters]
    else:
        kept = [dead_letter for dead_letter in dead_letters if dead_letter.id in details]
        records = [exports.listed_dead_letter(dead_letter) | content(details[dead_letter.id]) for dead_letter in kept]
    return [safe_json(hide(dead_letter)) + "\n" for dead_letter in records]
