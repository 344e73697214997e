"""`/users/{user_id}/preferences`: channels, quiet hours and time zone of a user.

`If-Match` with an ETag prevents lost updates.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Header, Response

from apps.notifications.api.limits import UserId
from apps.notifications.api.models import Preferences
from apps.notifications.api.problems import Problem
from apps.notifications.api.queries.preferences import PreferenceQueries, Stale
from apps.runtime.problems import describe

IfMatch = Annotated[str | None, Header(max_length=100, description="The ETag of the preferences to replace.")]


WRITING = (HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND, HTTPStatus.PRECONDITION_FAILED)


def preference_routes(queries: PreferenceQueries) -> APIRouter:
    router = APIRouter(prefix="/users/{user_id}/preferences", tags=["preferences"])

    @router.get("", responses=describe(HTTPStatus.NOT_FOUND))
    def show_preferences(user_id: UserId, response: Response) -> Preferences:
        """Channels by event type, quiet hours and time zone."""
        found = queries.find(user_id)
        if found is None:
            raise _no_user(user_id)
        response.headers["ETag"] = found.version
        return found

    @router.put("", responses=describe(*WRITING))
    def replace_preferences(
        user_id: UserId, wanted: Preferences, response: Response, if_match: IfMatch = None
    ) -> Preferences:
        """Replace all preferences; the defaults of the audience apply to omitted ones."""
        try:
            known = queries.replace(user_id, wanted, instead_of=None if if_match == "*" else if_match)
        except Stale:
            raise Problem(
                HTTPStatus.PRECONDITION_FAILED,
                "conflict",
                "the preferences have changed; read them again before you change them",
            ) from None
        if not known:
            raise _no_user(user_id)
        response.headers["ETag"] = wanted.version
        return wanted

    return router


def _no_user(user_id: int) -> Problem:
    return Problem(HTTPStatus.NOT_FOUND, "not-found", f"there is no user {user_id}")
