"""Parse a time on the command line, in settings or in a URL: an age before now, or a date."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from pillarbox.core.clock import seconds
from pillarbox.core.errors import ConfigurationError


def parse_time(text: str) -> datetime:
    """Parse an age or a time; returns a time in UTC. Raises ConfigurationError."""
    try:
        return datetime.now(UTC) - timedelta(seconds=seconds(text))
    except (ConfigurationError, OverflowError):
        pass
    try:
        at = datetime.fromisoformat(text.strip())
        return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise ConfigurationError(
            f"{text!r} is neither an age such as 1h nor a time such as 2026-11-30T09:00:00Z"
        ) from None
