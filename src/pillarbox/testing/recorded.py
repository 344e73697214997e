"""The events that a test has recorded, and assertions on them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import overload

from pillarbox.core.errors import ConfigurationError
from pillarbox.core.rows import EventRow
from pillarbox.testing.matching import Expectation, RecordedEvent, describe, explain


class RecordAssertions(ABC):
    """Assertions on recorded events. A failed one shows the nearest events and the fields in which they differ."""

    @property
    @abstractmethod
    def events(self) -> RecordedEvents:
        """The events to check, in the order in which they were recorded."""

    def assert_recorded(self, event_type: str, *, count: int | None = None, **expected: object) -> RecordedEvent:
        """Assert that an event of this type was recorded, with these values; returns the first that matches.

        count: the exact number of matching events; None: one or more.
        expected: a field of the event, or a path into it: `payload__id=42`, `key="order:42"`.
        """
        __tracebackhide__ = True
        if count is not None and count < 1:
            raise ConfigurationError(f"count={count!r} must be 1 or more; to expect none, call assert_not_recorded")
        events, expectation = self.events, Expectation(event_type, expected)
        matching = events.matching(expectation)
        if not matching:
            raise AssertionError(_failure(f"no recorded event matches {expectation}", expectation, events))
        if count is not None and len(matching) != count:
            expected_count = f"expected {count} × {expectation}, recorded {len(matching)}"
            raise AssertionError(_failure(expected_count, expectation, events))
        return matching[0]

    def assert_not_recorded(self, event_type: str | None = None, **expected: object) -> None:
        """Assert that no event of this type was recorded with these values; without a type, no event at all."""
        __tracebackhide__ = True
        expectation = Expectation(event_type, expected)
        if matching := self.events.matching(expectation):
            lines = [f"expected no {expectation}, recorded {len(matching)}:", *(f"  {describe(e)}" for e in matching)]
            raise AssertionError("\n".join(lines))

    def assert_recorded_in_order(self, *event_types: str) -> None:
        """Assert that events of these types were recorded in this order; other events may be in between."""
        __tracebackhide__ = True
        recorded = self.events.event_types
        rest = iter(recorded)
        for position, event_type in enumerate(event_types):
            if event_type not in rest:
                before = f" after {event_types[position - 1]!r}" if position else ""
                listed = ", ".join(recorded) or "nothing"
                raise AssertionError(f"no {event_type!r} was recorded{before}; recorded in this order: {listed}")


class RecordedEvents(RecordAssertions, Sequence[RecordedEvent]):
    """Recorded events, in order. An event that was rolled back is not among them."""

    def __init__(self, rows: Sequence[EventRow], *, unseen: Sequence[EventRow] = ()) -> None:
        """unseen: rows that were rolled back or not committed; a failed assertion mentions them."""
        self.rows = tuple(rows)
        self.unseen = tuple(unseen)
        self._events = tuple(RecordedEvent.of(row) for row in rows)

    @property
    def events(self) -> RecordedEvents:
        return self

    @property
    def event_types(self) -> list[str]:
        """The types, in the order in which the events were recorded."""
        return [event.event_type for event in self]

    def matching(self, expectation: Expectation) -> list[RecordedEvent]:
        return [event for event in self if not expectation.differences(event)]

    @overload
    def __getitem__(self, index: int) -> RecordedEvent: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[RecordedEvent]: ...

    def __getitem__(self, index: int | slice) -> RecordedEvent | Sequence[RecordedEvent]:
        return self._events[index]

    def __iter__(self) -> Iterator[RecordedEvent]:
        return iter(self._events)

    def __len__(self) -> int:
        return len(self._events)

    def __repr__(self) -> str:
        return f"<RecordedEvents {list(self._events)}>"


def _failure(what: str, expectation: Expectation, events: RecordedEvents) -> str:
    lines = [what, *(explain(expectation, events) if events else ["no event was recorded"])]
    if events.unseen:
        types = ", ".join(dict.fromkeys(row.event_type for row in events.unseen))
        lines.append(f"rolled back, or not committed yet: {len(events.unseen)} ({types})")
    return "\n".join(lines)
