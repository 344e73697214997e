"""Read events from lines of JSON: one object per line, with the fields of an event."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import fields
from datetime import datetime
from difflib import get_close_matches
from typing import Any, cast

from pillarbox.core.errors import RecordError
from pillarbox.core.event import Event

PAYLOAD_BASE64 = "payload_base64"
NAMES = (*(field.name for field in fields(Event)), PAYLOAD_BASE64)
_TIMES = ("occurred_at", "available_at")


def event_of(line: str) -> Event:
    """Return the event of a line. Raises RecordError with the field."""
    try:
        given = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise RecordError(f"the line is not JSON: {error}") from None
    if not isinstance(given, dict):
        raise RecordError(f"the line is a JSON {type(given).__name__}; write an object with event_type and payload")
    named = cast("dict[str, Any]", given)
    for name in named:
        if name not in NAMES:
            near = get_close_matches(name, NAMES, n=1, cutoff=0.0)[0]
            raise RecordError(f"an event has no field {name!r}; did you mean {near}?", field=name)
    if "event_type" not in named:
        raise RecordError("event_type is missing", field="event_type")
    fields_given = {name: value for name, value in named.items() if value is not None}
    fields_given |= {name: _time(name, fields_given[name]) for name in _TIMES if name in fields_given}
    payload = payload_of(fields_given)
    if payload is None:
        raise RecordError("payload is missing; write {} for an empty one", field="payload")
    rest = {name: value for name, value in fields_given.items() if name not in ("payload", PAYLOAD_BASE64)}
    return Event(rest.pop("event_type", None), payload, **rest)


def payload_of(given: Mapping[str, Any]) -> Any:
    """Return `payload`, or the bytes of `payload_base64`; None if both are missing. Raises RecordError."""
    encoded, payload = given.get(PAYLOAD_BASE64), given.get("payload")
    if encoded is None:
        return payload
    if payload is not None:
        raise RecordError(f"payload and {PAYLOAD_BASE64} are both given; write one of them", field="payload")
    try:
        return base64.b64decode(encoded, validate=True)
    except (binascii.Error, TypeError, ValueError) as error:
        raise RecordError(f"{PAYLOAD_BASE64}: {error}", field=PAYLOAD_BASE64) from None


def _time(name: str, text: object) -> datetime:
    try:
        return datetime.fromisoformat(str(text))
    except ValueError:
        raise RecordError(
            f"{name}: {text!r} is not a time; write for example 2026-11-30T09:00:00Z", field=name
        ) from None
