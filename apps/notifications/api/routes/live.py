"""`/users/{user_id}/notifications/live`: new IN_APP notifications as Server-Sent Events."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Header
from fastapi.responses import StreamingResponse

from apps.notifications.api.limits import HIGHEST_ID, UserId
from apps.notifications.api.live import Live
from apps.runtime.problems import describe

LastEventId = Annotated[
    int | None, Header(ge=0, le=HIGHEST_ID, description="The id of the last notification received; 0 for all.")
]


def live_routes(live: Live) -> APIRouter:
    router = APIRouter(prefix="/users/{user_id}/notifications", tags=["notifications"])

    @router.get(
        "/live",
        response_class=StreamingResponse,
        responses={
            200: {"description": "Events called `notification`", "content": {"text/event-stream": {}}},
            **describe(HTTPStatus.SERVICE_UNAVAILABLE),
        },
    )
    async def follow(user_id: UserId, last_event_id: LastEventId = None) -> StreamingResponse:
        """New notifications, or those after `Last-Event-ID`."""
        follower = await live.begin(user_id, last_event_id)
        return StreamingResponse(
            live.stream(follower),
            media_type="text/event-stream",
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        )

    return router
