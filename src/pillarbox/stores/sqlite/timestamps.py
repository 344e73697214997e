"""Times as the tables have them: ISO-8601 text. Only a CHECK of the table ensures that the text is one."""

from __future__ import annotations

from datetime import UTC, datetime

from pillarbox.core.message import EARLIEST


def decode_time(text: object) -> datetime:
    """The time that `text` names; EARLIEST if it names none, so that one row never hides the others."""
    try:
        found = datetime.fromisoformat(str(text))
        return found if found.tzinfo is not None else found.replace(tzinfo=UTC)
    except ValueError:
        return EARLIEST


def decode_optional_time(text: object) -> datetime | None:
    """The same where there may be no time."""
    return None if text is None else decode_time(text)
