"""Check the names of destinations and relays that operators give."""

from __future__ import annotations

from pillarbox.core.errors import ConfigurationError, RecordError
from pillarbox.core.event import MAX_TEXT_BYTES, check_text


def check_name(kind: str, name: str, *, every: str) -> None:
    """Raise ConfigurationError for an invalid name, and for `every`, which is reserved."""
    if name == every:
        raise ConfigurationError(f"{name!r} is not the name of a {kind}: leave the name out to select all")
    try:
        check_text(f"the name of a {kind}", name, MAX_TEXT_BYTES)
    except RecordError as error:
        raise ConfigurationError(str(error)) from None
