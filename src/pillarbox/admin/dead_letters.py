"""Dead letters: messages whose delivery ended without success, and what an operator does about them.

An edited dead letter is sent with another payload or other headers. The message carries the header `amended` with the
hash of the payload it had before. The audit has hash and size of both payloads and the names of the changed headers.
Neither has the content.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Any, Literal, NamedTuple, Protocol

from pillarbox.admin.listing import EventDetail, page_of

AMENDED = "amended"
"""The header with the SHA-256 of the payload that an edited message had before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterEdit:
    """The content of a dead letter before and after an edit."""

    old_payload: bytes
    old_headers: Mapping[str, Any]
    payload: bytes
    headers: Mapping[str, Any]

    @classmethod
    def of(
        cls, old_payload: bytes, old_headers: str, *, payload: bytes | None, headers: Mapping[str, str] | None
    ) -> DeadLetterEdit:
        """Return the edit of stored content; None leaves a part as it is."""
        try:
            had: dict[str, Any] = json.loads(old_headers)
        except (ValueError, RecursionError):
            had = {}  # Too deep or too long to decode: the message is sent without them.
        return cls(
            old_payload=old_payload,
            old_headers=had,
            payload=old_payload if payload is None else payload,
            headers=had if headers is None else headers,
        )

    @property
    def changes(self) -> bool:
        """Whether the content changes."""
        return self.payload != self.old_payload or dict(self.headers) != dict(self.old_headers)

    @property
    def headers_json(self) -> str:
        """The headers that the message is sent with."""
        marked = dict(self.headers) | {AMENDED: _hash(self.old_payload)}
        return json.dumps(marked, ensure_ascii=False, separators=(",", ":"))

    @property
    def summary(self) -> dict[str, Any]:
        """What changes, without the content: hash and size of both payloads, names of changed headers."""
        old, new = self.old_headers, self.headers
        return {
            "payload": {"old": _hash_and_size(self.old_payload), "new": _hash_and_size(self.payload)},
            "headers": {
                "set": sorted(name for name, value in new.items() if name not in old or old[name] != value),
                "removed": sorted(name for name in old if name not in new),
            },
        }


def _hash_and_size(payload: bytes) -> dict[str, Any]:
    return {"sha256": _hash(payload), "bytes": len(payload)}


def _hash(payload: bytes) -> str:
    return sha256(payload).hexdigest()


class ListedDeadLetter(NamedTuple):
    """A dead letter in a list."""

    id: int
    event_id: str
    destination: str
    event_type: str
    key: str | None
    error: str
    attempts: int
    recorded_at: datetime
    first_failed_at: datetime | None
    dead_lettered_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterFilter:
    """Which dead letters to list; None matches all."""

    event_id: str | None = None
    event_type: str | None = None
    key: str | None = None
    destination: str | None = None
    since: datetime | None = None
    """Dead-lettered at that time or later."""
    error: str | None = None
    """A part of the error, verbatim."""

    @property
    def index(self) -> Literal["event", "key", "type"] | None:
        """The index by which the dead letters are searched."""
        if self.event_id is not None:
            return "event"
        return "key" if self.key is not None else "type" if self.event_type is not None else None

    @property
    def asked(self) -> int:
        """How many filters are given."""
        given = (self.event_id, self.event_type, self.key, self.destination, self.since, self.error)
        return sum(value is not None for value in given)


ALL_DEAD_LETTERS = DeadLetterFilter()


class DeadLetterPage(NamedTuple):
    """A page of dead letters, the newest first."""

    dead_letters: list[ListedDeadLetter]
    before: int | None
    """Where the next page continues; None if there is none."""


class FoundDeadLetter(NamedTuple):
    """A row that a store scanned for a page of dead letters."""

    dead_letter: ListedDeadLetter
    wanted: bool
    edge: bool


def dead_letter_page(found: Sequence[FoundDeadLetter], *, limit: int) -> DeadLetterPage:
    """Return the page that scanned rows make; see `page_of`."""
    listed, last = page_of(found, limit=limit)
    return DeadLetterPage(listed, None if last is None else last.id)


class DeadLetters(Protocol):
    """Lists, shows, retries, edits and discards dead letters.

    Every message that changes gets an entry in the audit. With `bulk_action`, the number of a
    bulk action's entry, that entry counts the message instead, in the same transaction.
    """

    async def list(
        self, wanted: DeadLetterFilter = ALL_DEAD_LETTERS, *, limit: int, before: int | None = None
    ) -> DeadLetterPage:
        """Return one page of dead letters, the newest first."""
        ...

    async def details(self, ids: Sequence[int]) -> Sequence[EventDetail]:
        """Return these dead letters with their content, the newest first; those that no longer exist are left out."""
        ...

    async def retry(self, ids: Sequence[int], *, by: str = "", bulk_action: int | None = None) -> int:
        """Send dead letters again: each goes to the end of its key with its attempts at zero; returns how many."""
        ...

    async def edit(
        self,
        dead_letter_id: int,
        *,
        payload: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        by: str = "",
    ) -> bool:
        """Retry one dead letter with another payload or other headers; None leaves them as they are.

        Returns False and changes nothing if the dead letter no longer exists, or if its event is already pending for
        the same destination.
        """
        ...

    async def discard(self, ids: Sequence[int], *, by: str = "", bulk_action: int | None = None) -> int:
        """Delete dead letters; returns how many."""
        ...
