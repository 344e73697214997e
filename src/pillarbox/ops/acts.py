"""What a person does to many events at once: one entry of the audit, which says what it is about and grows with it.

Done in bites, each with its part of the entry: whatever ends it, the audit knows how far it came.
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
    """Which events were meant: those named by their ids, or all that fit."""

    wanted: EventFilter | DeadLetterFilter
    event_ids: tuple[str, ...] = ()
    group: str | None = None

    @property
    def subject(self) -> str:
        """The event, if it is one; else the group, how many, and the filter in words."""
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
    """Enter an act of which nothing is done yet; returns its number."""
    named = {"event_ids": list(scope.event_ids)} if len(scope.event_ids) > 1 else {}
    return await store.admin.audit.add(what, scope.subject, count=0, detail={"left": count, **more, **named}, by=by)
