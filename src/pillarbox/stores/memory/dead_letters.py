"""Dead letters. They belong to no lane: operators change them directly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pillarbox.admin.dead_letters import (
    ALL_DEAD_LETTERS,
    DeadLetterEdit,
    DeadLetterFilter,
    DeadLetterPage,
    FoundDeadLetter,
    ListedDeadLetter,
    dead_letter_page,
)
from pillarbox.admin.listing import EventDetail
from pillarbox.stores.memory.events import dead_letter_detail
from pillarbox.stores.memory.tables import StoredDeadLetter, StoredMessage, Tables, atomic


class MemoryDeadLetters:
    """See `pillarbox.admin.dead_letters.DeadLetters`."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    @atomic
    def list(
        self, wanted: DeadLetterFilter = ALL_DEAD_LETTERS, *, limit: int, before: int | None = None
    ) -> DeadLetterPage:
        found = [
            FoundDeadLetter(listed, True, False)
            for number, dead_letter in reversed(self._tables.dead.items())
            if _is_wanted(listed := _listed(number, dead_letter), wanted) and (before is None or number < before)
        ]
        return dead_letter_page(found, limit=limit)

    @atomic
    def details(self, ids: Sequence[int]) -> Sequence[EventDetail]:
        newest_first = sorted(set(ids) & self._tables.dead.keys(), reverse=True)
        return [dead_letter_detail(number, self._tables.dead[number]) for number in newest_first]

    @atomic
    def retry(self, ids: Sequence[int], *, by: str = "", bulk_action: int | None = None) -> int:
        return sum(self._revive(number) for number in sorted(set(ids)))

    @atomic
    def edit(
        self,
        dead_letter_id: int,
        *,
        payload: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        by: str = "",
    ) -> bool:
        if dead_letter_id not in self._tables.dead:
            return False
        m = self._tables.dead[dead_letter_id].stored.message
        return self._revive(
            dead_letter_id, DeadLetterEdit.of(m.payload, m.headers_json, payload=payload, headers=headers)
        )

    @atomic
    def discard(self, ids: Sequence[int], *, by: str = "", bulk_action: int | None = None) -> int:
        discarded = [number for number in sorted(set(ids)) if self._tables.dead.pop(number, None)]
        return len(discarded)

    def _revive(self, number: int, amendment: DeadLetterEdit | None = None) -> bool:
        if number not in self._tables.dead:
            return False
        m = self._tables.dead[number].stored.message
        if m.identity in self._tables.waiting:
            return False
        del self._tables.dead[number]
        if amendment is not None:
            m = m._replace(payload=amendment.payload, headers_json=amendment.headers_json)
        again = m._replace(id=self._tables.next_number(), available_at=None, held=None, attempts=0, deferrals=1)
        self._tables.put(StoredMessage(message=again))
        # The relay sends what an operator retries, whatever the ledger says; the deferral says so to the history.
        self._tables.processed.pop(m.identity, None)
        return True


def _listed(number: int, dead_letter: StoredDeadLetter) -> ListedDeadLetter:
    m = dead_letter.stored.message
    return ListedDeadLetter(
        id=number,
        event_id=m.event_id,
        destination=m.destination,
        event_type=m.event_type,
        key=m.key,
        error=dead_letter.error,
        attempts=m.attempts,
        recorded_at=m.recorded_at,
        first_failed_at=dead_letter.stored.first_failed_at,
        dead_lettered_at=dead_letter.dead_lettered_at,
    )


def _is_wanted(dead_letter: ListedDeadLetter, wanted: DeadLetterFilter) -> bool:
    return (
        wanted.event_id in (None, dead_letter.event_id)
        and wanted.event_type in (None, dead_letter.event_type)
        and wanted.key in (None, dead_letter.key)
        and wanted.destination in (None, dead_letter.destination)
        and (wanted.since is None or dead_letter.dead_lettered_at >= wanted.since)
        and (wanted.error is None or wanted.error in dead_letter.error)
    )
