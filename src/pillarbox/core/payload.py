"""Payloads: their content type, their JSON and their size."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NoReturn

from pillarbox.core.errors import ConfigurationError, PermanentError


@lru_cache(maxsize=256)
def is_json(content_type: str) -> bool:
    """Whether a content type says JSON: `application/json`, `text/json` and `…+json`, in any case, with or without
    parameters."""
    media_type = content_type.partition(";")[0].strip().lower()
    return media_type in ("application/json", "text/json") or media_type.endswith("+json")


def parse_json(document: str | bytes) -> Any:
    """The value of a JSON document. Raises ValueError, also for NaN, Infinity and too deep nesting."""
    try:
        return json.loads(document, parse_constant=refuse_constant)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def refuse_constant(name: str) -> NoReturn:
    """Raise ValueError: NaN and Infinity are not JSON, though Python reads them. For `parse_constant`."""
    raise ValueError(f"{name} is not a JSON number")


Upcast = Callable[[str, int, Any], Any]
"""(event type, schema version, payload) → the payload in the current version, for example `EventTypes.upcast`."""


def decoded(
    body: bytes, content_type: str, *, event_id: str, event_type: str, version: int, upcast: Upcast | None = None
) -> Any:
    """The payload of an event, upcast if it is JSON. Raises PermanentError for invalid JSON, and whatever the
    upcaster raises."""
    if not is_json(content_type):
        return body
    try:
        payload = json.loads(body)
    except (ValueError, RecursionError) as error:
        # Without the cause, which contains the whole document.
        raise PermanentError(
            f"the payload of {event_id} has the content type {content_type} and does not decode: "
            f"{type(error).__name__}; correct the producer"
        ) from None
    return payload if upcast is None else upcast(event_type, version, payload)


_UNITS = {"b": 1, "bytes": 1, "kib": 1024, "mib": 1024**2, "gib": 1024**3, "kb": 1000, "mb": 1000**2, "gb": 1000**3}
_WRITTEN = re.compile(r"(\d{1,18})\s*([a-z]*)")

Size = str | int


def size_in_bytes(value: Size, *, field: str) -> int:
    """`value` in bytes. Raises ConfigurationError, naming `field`."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and (written := _WRITTEN.fullmatch(value.strip().lower())):
        number, unit = written.groups()
        if (factor := _UNITS.get(unit or "b")) is not None:
            return int(number) * factor
    raise ConfigurationError(f"{field}: {value!r} is not a size; write for example 256 KiB, 1 MiB or 1048576")


MAX_PAYLOAD_BYTES = 64 * 1024**2


def payload_limit(value: Size, *, field: str = "max_payload") -> int:
    """`value` in bytes. Raises ConfigurationError, naming `field`, unless it is from 1 byte to 64 MiB."""
    number = size_in_bytes(value, field=field)
    if not 1 <= number <= MAX_PAYLOAD_BYTES:
        raise ConfigurationError(f"{field}: {value!r} must be from 1 byte to 64 MiB")
    return number
