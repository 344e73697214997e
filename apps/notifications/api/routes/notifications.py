"""`/users/{user_id}/notifications`: a user's notifications, their read state, and the state of their deliveries."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Query

from apps.notifications.api.cursors import cursor_after, position_of
from apps.notifications.api.limits import Cursor, NotificationId, PageSize, UserId
from apps.notifications.api.models import DeliveryHistory, MarkedAsRead, Page
from apps.notifications.api.problems import Problem
from apps.notifications.api.queries.deliveries import DeliveryQueries
from apps.notifications.api.queries.notifications import NotificationQueries
from apps.notifications.domain import Audience, Channel
from apps.runtime.problems import describe

Unread = Annotated[bool, Query(description="Only unread notifications.")]
OneChannel = Annotated[Channel | None, Query(description="Only notifications of this channel.")]


def notification_routes(notifications: NotificationQueries, deliveries: DeliveryQueries) -> APIRouter:
    router = APIRouter(prefix="/users/{user_id}/notifications", tags=["notifications"])

    @router.get("")
    def list_notifications(
        user_id: UserId, limit: PageSize = 20, cursor: Cursor = None, unread: Unread = False, channel: OneChannel = None
    ) -> Page:
        """Newest first, of all audiences the user belongs to."""
        # One more than requested shows whether there is a next page.
        found = notifications.page(user_id, below=position_of(cursor), unread=unread, channel=channel, size=limit + 1)
        return Page(notifications=found[:limit], next=cursor_after(found[limit - 1]) if len(found) > limit else None)

    @router.post("/read")
    def read_all_notifications(user_id: UserId) -> MarkedAsRead:
        """Mark everything as read."""
        return MarkedAsRead(read=notifications.read_all(user_id))

    @router.put(
        "/{audience}/{notification_id}/read",
        status_code=HTTPStatus.NO_CONTENT,
        responses=describe(HTTPStatus.NOT_FOUND),
    )
    def read_notification(user_id: UserId, audience: Audience, notification_id: NotificationId) -> None:
        """Mark one as read; the time of the first call is kept."""
        if not notifications.read(user_id, audience, notification_id):
            raise _no_notification(audience, notification_id)

    @router.get("/{audience}/{notification_id}/deliveries", responses=describe(HTTPStatus.NOT_FOUND))
    def show_deliveries(user_id: UserId, audience: Audience, notification_id: NotificationId) -> DeliveryHistory:
        """The state of the delivery by each channel, for the event of this notification."""
        siblings = notifications.siblings(user_id, audience, notification_id)
        if not siblings:
            raise _no_notification(audience, notification_id)
        return DeliveryHistory(event_id=siblings[0].event_id, deliveries=deliveries.of(siblings))

    return router


def _no_notification(audience: Audience, notification_id: int) -> Problem:
    return Problem(HTTPStatus.NOT_FOUND, "not-found", f"user has no notification {notification_id} of {audience}")
