"""Times as every process writes them: UTC, six digits of fraction and `Z`, so that text sorts as time does."""

from __future__ import annotations

from datetime import UTC, datetime


def timestamp(at: datetime) -> str:
    """27 characters. A time without a time zone is taken as UTC."""
    utc = at if at.tzinfo is None else at.astimezone(UTC)
    return utc.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
