"""A place in the list of notifications, as text that a client hands back unread."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import UTC, datetime
from http import HTTPStatus

from apps.common.timestamps import timestamp
from apps.notifications.api.limits import HIGHEST_ID
from apps.notifications.api.models import Notification
from apps.notifications.api.problems import Problem
from apps.notifications.api.queries.notifications import Place
from apps.notifications.words import Audience


def written(last: Notification) -> str:
    """The cursor of a page that ended with this notification."""
    return urlsafe_b64encode(json.dumps([timestamp(last.created_at), last.audience, last.id]).encode()).decode()


def place_of(cursor: str | None) -> Place | None:
    """Raises Problem for a text that is no cursor of ours."""
    if cursor is None:
        return None
    try:
        created_at, audience, number = json.loads(urlsafe_b64decode(cursor))
        moment = datetime.fromisoformat(created_at)
        if moment.tzinfo is None or not 0 <= number <= HIGHEST_ID:
            raise _unreadable()
        return Place(created_at=moment.astimezone(UTC), audience=Audience(audience), id=int(number))
    except (ValueError, TypeError, OverflowError, RecursionError):
        raise _unreadable() from None


def _unreadable() -> Problem:
    return Problem(HTTPStatus.UNPROCESSABLE_ENTITY, "invalid", "the cursor is none of ours; begin again without one")
