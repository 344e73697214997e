"""Dead letters as lines of JSON: every one that fits, in bounded memory however many there are."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from pillarbox.core.browsing import EventDetail, LetterFilter, ListedLetter
from pillarbox.core.characters import safe_json
from pillarbox.core.store import Store
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
    store: Store, wanted: LetterFilter, content: Content | None, *, group: str | None = None, hide: Hide = dict
) -> AsyncIterator[str]:
    """A line for each, the newest first, with what `content` tells of what it carries; None: nothing. hide: takes out
    what nobody may see of a line."""
    before: int | None = None
    while True:
        page = await store.browsing.letters(wanted, limit=PAGE, before=before)
        letters = await members(page.letters, group)
        for start in range(0, len(letters), BITE):
            bite = letters[start : start + BITE]
            told = _alone(bite) if content is None else await _whole(store, bite, content)
            for letter in told:
                yield safe_json(hide(letter)) + "\n"
        if (before := page.before) is None:
            return


def _alone(letters: Sequence[ListedLetter]) -> list[dict[str, Any]]:
    return [exports.listed_letter(letter) for letter in letters]


async def _whole(store: Store, letters: Sequence[ListedLetter], content: Content) -> list[dict[str, Any]]:
    """Without those that were sent again or dropped meanwhile."""
    details = {detail.letter: detail for detail in await store.browsing.details([letter.id for letter in letters])}
    return [exports.listed_letter(letter) | content(details[letter.id]) for letter in letters if letter.id in details]
