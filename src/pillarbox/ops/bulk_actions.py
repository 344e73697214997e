"""A bulk action is one entry of the audit log, which has the selection and is updated with every batch.

After a crash the entry says how many events were processed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

from pillarbox.admin.admin import AdminStore
from pillarbox.admin.dead_letters import DeadLetterFilter
from pillarbox.admin.listing import EventFilter

EVERYTHING = "everything"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The selection of a bulk action: event ids, or a filter."""

    wanted: EventFilter | DeadLetterFilter
    event_ids: tuple[str, ...] = ()
    group: str | None = None

    @property
    def subject(self) -> str:
        """The event id if there is only one; otherwise the group, the number of events, and the filter."""
        if len(self.event_ids) == 1:
            return self.event_ids[0]
        return ", ".join(self._words()) or EVERYTHING

    def _words(self) -> Iterator[str]:
        if self.group is not None:
            yield self.group
        if self.event_ids:
            yield f"{len(self.event_ids):,} events"
        for field in fields(self.wanted):
            name, value = field.name.removeprefix("event_"), getattr(self.wanted, field.name)
            if value not in (None, False):
                yield name if value is True else f"{name} {value}"


async def begin(store: AdminStore, what: str, scope: Scope, *, count: int, by: str, **more: float) -> int:
    """Add the audit entry of a bulk action, with a count of zero; returns its number."""
    named = {"event_ids": list(scope.event_ids)} if len(scope.event_ids) > 1 else {}
    return await store.admin.audit.add(
        what, scope.subject, count=0, detail={"remaining": count, **more, **named}, by=by
    )
