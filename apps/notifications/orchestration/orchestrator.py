"""Resolves a message into notifications: every recipient by every channel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import Connection

from apps.notifications.domain import Audience, Channel
from apps.notifications.message import NotificationMessage
from apps.notifications.orchestration.preferences import channels_for
from apps.notifications.orchestration.recipients import Recipient, defaults_of, recipients_of
from pillarbox import PermanentError

Clock = Callable[[], datetime]


def utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    """A notification for one user by one channel."""

    user_id: int
    channel: Channel
    deliver_after: datetime | None
    """The end of the user's quiet hours in UTC, if they are now; None for IN_APP, which ignores quiet hours."""


class NotificationOrchestrator:
    """Resolves the messages of one audience."""

    def __init__(self, audience: Audience, *, clock: Clock = utc_now) -> None:
        self._audience = audience
        self._clock = clock

    def disaggregate(self, connection: Connection, message: NotificationMessage) -> list[Notification]:
        """The notifications of a message, by user and channel. Raises PermanentError for another audience's message,
        LookupError for an unknown SINGLE recipient, and NoRecipients for an aggregate without recipients."""
        if message.audience is not self._audience:
            raise PermanentError(
                f"message {message.event_id} is for {message.audience} and came to {self._audience}; correct its route"
            )
        defaults = defaults_of(connection, message)
        now = self._clock()
        return [
            Notification(user_id=user.user_id, channel=channel, deliver_after=_deliver_after(user, channel, now))
            for user in recipients_of(connection, message)
            for channel in channels_for(message.event_type, defaults=defaults, preferences=user.preferences)
        ]


def _deliver_after(user: Recipient, channel: Channel, now: datetime) -> datetime | None:
    if user.quiet is None or channel is Channel.IN_APP:
        return None
    return user.quiet.end(now, user.zone)
