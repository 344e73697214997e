"""How large a payload may be."""

from __future__ import annotations

from pillarbox.core.errors import ConfigurationError
from pillarbox.core.text import Size, size_in_bytes

__all__ = ["LARGEST_PAYLOAD", "Size", "payload_limit"]

LARGEST_PAYLOAD = 64 * 1024**2


def payload_limit(value: Size, *, field: str = "max_payload") -> int:
    """`value` in bytes. Raises ConfigurationError, naming `field`, unless it is from 1 byte to 64 MiB."""
    number = size_in_bytes(value, field=field)
    if not 1 <= number <= LARGEST_PAYLOAD:
        raise ConfigurationError(f"{field}: {value!r} must be from 1 byte to 64 MiB")
    return number
