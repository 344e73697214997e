"""Compares recorded events with what a test expects, and explains the difference.

An expectation names a field of the event, and with double underscores a path into it: `payload__customer__id=7`,
`payload__items__0__sku="A1"`, `headers__tenant="acme"`. The payload is compared as a consumer receives it, decoded from
JSON; an expected UUID, date or dataclass is encoded first.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from difflib import SequenceMatcher, get_close_matches
from typing import Any, Self, cast

from pillarbox.core.errors import ConfigurationError, RecordError
from pillarbox.core.payload import is_json
from pillarbox.core.rows import EventRow
from pillarbox.record.encoding import encode

NEAREST = 3
"""Recorded events that a failed assertion compares with the expected one."""
_LONGEST = 200  # characters of a value in a message


class _Missing:
    def __repr__(self) -> str:
        return "<missing>"


_MISSING = _Missing()


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedEvent:
    """An event as a consumer will receive it."""

    event_type: str
    payload: Any
    """Decoded JSON; bytes for any other content type."""
    event_id: str
    key: str | None
    """The ordering key, also if it comes from the aggregate."""
    destination: str
    aggregate_type: str | None
    aggregate_id: str | None
    headers: Mapping[str, str]
    content_type: str
    schema_version: int
    correlation_id: str | None
    causation_id: str | None
    trace_id: str | None
    occurred_at: datetime | None
    """None: the database sets it."""
    available_at: datetime | None

    @classmethod
    def of(cls, row: EventRow) -> Self:
        return cls(
            event_type=row.event_type,
            payload=json.loads(row.payload) if is_json(row.content_type) else row.payload,
            event_id=row.event_id,
            key=row.key,
            destination=row.destination,
            aggregate_type=row.aggregate_type,
            aggregate_id=row.aggregate_id,
            headers=json.loads(row.headers),
            content_type=row.content_type,
            schema_version=row.schema_version,
            correlation_id=row.correlation_id,
            causation_id=row.causation_id,
            trace_id=row.trace_id,
            occurred_at=row.occurred_at,
            available_at=row.available_at,
        )

    def __repr__(self) -> str:
        return f"<RecordedEvent {describe(self)}>"


FIELDS = tuple(field.name for field in fields(RecordedEvent))


@dataclass(frozen=True, slots=True)
class Expectation:
    """What a test expects of one event. Raises ConfigurationError for a field that events do not have."""

    event_type: str | None
    values: Mapping[str, object]

    def __post_init__(self) -> None:
        for name in self.values:
            field = name.split("__")[0]
            if field not in FIELDS:
                nearest = get_close_matches(field, FIELDS, n=1)
                hint = f"did you mean {nearest[0]!r}?" if nearest else f"use one of {', '.join(FIELDS)}"
                raise ConfigurationError(f"{name!r}: an event has no field {field!r}; {hint}")

    def differences(self, event: RecordedEvent) -> list[str]:
        """One line for each difference; empty if the event matches."""
        found: list[str] = []
        if self.event_type is not None and self.event_type != event.event_type:
            found.append(f"event_type: expected {self.event_type!r}, recorded {event.event_type!r}")
        for name, expected in self.values.items():
            field, *path = name.split("__")
            found += _differences(name.replace("__", "."), expected, _at(getattr(event, field), path))
        return found

    def __str__(self) -> str:
        what = "event" if self.event_type is None else repr(self.event_type)
        values = ", ".join(f"{name.replace('__', '.')}={_short(value)}" for name, value in self.values.items())
        return f"{what} with {values}" if values else what


def explain(expectation: Expectation, events: Sequence[RecordedEvent]) -> Iterator[str]:
    """Lines that compare the nearest recorded events with the expected one."""
    numbered = list(enumerate(events, 1))
    of_type = [(number, event) for number, event in numbered if expectation.event_type in (None, event.event_type)]
    nearest = sorted(
        of_type or numbered,
        key=lambda one: (
            -_similarity(expectation.event_type, one[1].event_type),
            len(expectation.differences(one[1])),
        ),
    )
    yield f"nearest of {len(events)} recorded:"
    for number, event in nearest[:NEAREST]:
        yield f"  #{number} {describe(event)}"
        yield from (f"       {difference}" for difference in expectation.differences(event) or ["matches"])


def describe(event: RecordedEvent) -> str:
    """The event in one line."""
    key = f", key={event.key!r}" if event.key is not None else ""
    destination = f", destination={event.destination!r}" if event.destination else ""
    return f"{event.event_type} {_short(event.payload)}{key}{destination}"


def _similarity(expected: str | None, recorded: str) -> float:
    return 1.0 if expected is None else SequenceMatcher(None, expected, recorded).ratio()


def _at(value: object, path: Sequence[str]) -> object:
    """The value at a path; a key may itself contain double underscores."""
    if not path:
        return value
    if isinstance(value, Mapping):
        items = cast("Mapping[str, object]", value)
        for end in range(len(path), 0, -1):
            if (key := "__".join(path[:end])) in items:
                return _at(items[key], path[end:])
    elif isinstance(value, list) and path[0].isdecimal():
        elements = cast("list[object]", value)
        if int(path[0]) < len(elements):
            return _at(elements[int(path[0])], path[1:])
    return _MISSING


def _differences(path: str, expected: object, recorded: object) -> Iterator[str]:
    whole: object = expected
    if isinstance(expected, Mapping) and isinstance(recorded, Mapping):
        wanted, found = cast("Mapping[str, object]", expected), cast("Mapping[str, object]", recorded)
        for key in (*wanted, *(key for key in found if key not in wanted)):
            yield from _differences(f"{path}.{key}", wanted.get(key, _MISSING), found.get(key, _MISSING))
    elif isinstance(expected, list | tuple) and isinstance(recorded, list):
        elements, others = cast("Sequence[object]", expected), cast("list[object]", recorded)
        for index in range(max(len(elements), len(others))):
            pair = (items[index] if index < len(items) else _MISSING for items in (elements, others))
            yield from _differences(f"{path}[{index}]", *pair)
    elif not _equal(whole, recorded):
        yield f"{path}: expected {_short(whole)}, recorded {_short(recorded)}"


def _equal(expected: object, recorded: object) -> bool:
    if expected is _MISSING or recorded is _MISSING:
        return False
    if bool(expected == recorded):
        return True
    try:
        return bool(json.loads(encode([expected])) == [recorded])
    except RecordError:
        return False


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}… ({len(text)} characters)"
