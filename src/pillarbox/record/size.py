"""Sizes as people write them: `1 MiB`, `64 KiB`; numbers are bytes."""

from __future__ import annotations

import re

from pillarbox.core.errors import ConfigurationError

_UNITS = {"b": 1, "bytes": 1, "kib": 1024, "mib": 1024**2, "kb": 1000, "mb": 1000**2}
_WRITTEN = re.compile(r"(\d+)\s*([a-z]*)")

Size = str | int

LARGEST_PAYLOAD = 64 * 1024**2


def payload_limit(value: Size, *, field: str = "max_payload") -> int:
    """`value` in bytes. Raises ConfigurationError, naming `field`, unless it is from 1 byte to 64 MiB."""
    number = _bytes(value)
    if number is None:
        raise ConfigurationError(f"{field}: {value!r} is not a size; write for example 256 KiB, 1 MiB or 1048576")
    if not 1 <= number <= LARGEST_PAYLOAD:
        raise ConfigurationError(f"{field}: {value!r} must be from 1 byte to 64 MiB")
    return number


def _bytes(value: object) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and (written := _WRITTEN.fullmatch(value.strip().lower())):
        number, unit = written.groups()
        factor = _UNITS.get(unit or "b")
        return int(number) * factor if factor else None
    return None
