"""A position in the list of notifications, as an opaque token."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import UTC, datetime
from http import HTTPStatus

from apps.notifications.api.limits import HIGHEST_ID
from apps.notifications.api.models import Notification
from apps.notifications.api.problems import Problem
from apps.notifications.api.queries.notifications import Position
from apps.notifications.domain import Audience
from apps.runtime.timestamps import timestamp


def cursor_after(last: Notification) -> str:
    """The cursor of the page after this notification."""
    return urlsafe_b64encode(json.dumps([timestamp(last.created_at), last.audience, last.id]).encode()).decode()


def position_of(cursor: str | None) -> Position | None:
    """The position that a cursor encodes. Raises Problem for an invalid cursor."""
    if cursor is None:
        return None
    try:
        created_at, audience, number = json.loads(urlsafe_b64decode(cursor))
        moment = datetime.fromisoformat(created_at)
        if moment.tzinfo is None or not 0 <= number <= HIGHEST_ID:
            raise _invalid_cursor()
        return Position(created_at=moment.astimezone(UTC), audience=Audience(audience), id=int(number))
    except (ValueError, TypeError, OverflowError, RecursionError):
        raise _invalid_cursor() from None


def _invalid_cursor() -> Problem:
    return Problem(HTTPStatus.UNPROCESSABLE_ENTITY, "invalid", "the cursor is invalid; start again without one")
