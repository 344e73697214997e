"""Text: content types, JSON, sizes, counts, and characters that are unsafe to display."""

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
    """Raise ValueError: NaN and Infinity are no JSON, though Python reads them. For `parse_constant`."""
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
_WRITTEN = re.compile(r"(\d+)\s*([a-z]*)")

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


LARGEST_PAYLOAD = 64 * 1024**2


def payload_limit(value: Size, *, field: str = "max_payload") -> int:
    """`value` in bytes. Raises ConfigurationError, naming `field`, unless it is from 1 byte to 64 MiB."""
    number = size_in_bytes(value, field=field)
    if not 1 <= number <= LARGEST_PAYLOAD:
        raise ConfigurationError(f"{field}: {value!r} must be from 1 byte to 64 MiB")
    return number


def noun(count: int, one: str, many: str = "") -> str:
    """The noun for a count; `many`: its plural, if it is not formed with an s."""
    return one if count == 1 else many or f"{one}s"


def plural(count: int, one: str, many: str = "", *, most: int | None = None) -> str:
    """A count and its noun; a count beyond `most` becomes "more than `most`"."""
    if most is not None and count > most:
        return f"more than {most:,} {noun(count, one, many)}"
    return f"{count:,} {noun(count, one, many)}"


UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f\ud800-\udfff]"
)
_LINE_ENDS = {"\t": "\\t", "\n": "\\n", "\r": "\\r"}


def escaped(text: str, *, keep: str = "") -> str:
    """The text with unsafe characters escaped as `\\x1b` or `\\u202e`, except those in `keep`."""
    return UNSAFE.sub(lambda found: found[0] if found[0] in keep else _written(found[0]), text)


def safe_json(value: object) -> str:
    """JSON on one line without unsafe characters: they are escaped inside strings."""
    return escape_json(json.dumps(value, ensure_ascii=False))


def escape_json(text: str) -> str:
    """Equivalent JSON text without unsafe characters: they are escaped inside strings."""
    return UNSAFE.sub(lambda found: found[0] if found[0] in "\t\n\r" else json.dumps(found[0])[1:-1], text)


def _written(character: str) -> str:
    if character in _LINE_ENDS:
        return _LINE_ENDS[character]
    number = ord(character)
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
