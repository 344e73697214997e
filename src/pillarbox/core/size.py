"""Sizes as people write them: `1 MiB`, `64 KiB`; numbers are bytes."""

from __future__ import annotations

import re

from pillarbox.core.errors import ConfigurationError

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
