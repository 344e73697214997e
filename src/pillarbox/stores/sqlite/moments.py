"""Times as the tables have them, ISO-8601 text, which nothing but a CHECK makes legible."""

from __future__ import annotations

from datetime import UTC, datetime

from pillarbox.core.message import EARLIEST


def moment(text: object) -> datetime:
    """The time that `text` names; EARLIEST if it names none, so that one row never hides the others."""
    try:
        found = datetime.fromisoformat(str(text))
        return found if found.tzinfo is not None else found.replace(tzinfo=UTC)
    except ValueError:
        return EARLIEST


def moment_or_none(text: object) -> datetime | None:
    """The same where there may be no time."""
    return None if text is None else moment(text)
