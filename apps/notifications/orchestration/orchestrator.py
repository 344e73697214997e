"""Every recipient by every channel: what one message means for each user of an audience."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import Connection

from apps.notifications.message import NotificationMessage
from apps.notifications.orchestration.preferences import channels_for
from apps.notifications.orchestration.recipients import Recipient, defaults_of, recipients_of
from apps.notifications.words import Audience, Channel
from pillarbox import PermanentError

Clock = Callable[[], datetime]


def utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    """One user, one channel."""

    user_id: int
    channel: Channel
    deliver_after: datetime | None
    """The end of the user's quiet hours, in UTC, if it is quiet now; an inbox in the application disturbs nobody."""


class NotificationOrchestrator:
    """Disaggregates the messages of one audience."""

    def __init__(self, audience: Audience, *, clock: Clock = utc_now) -> None:
        self._audience = audience
        self._clock = clock

    def disaggregate(self, connection: Connection, message: NotificationMessage) -> list[Notification]:
        """Every notification it means, by user and channel. Raises PermanentError for another audience's message,
        LookupError for a SINGLE recipient whom nobody knows, and NoRecipients for an aggregate without any."""
        if message.audience is not self._audience:
            raise PermanentError(
                f"message {message.event_id} is for {message.audience} and came to {self._audience}; correct its route"
            )
        defaults = defaults_of(connection, message)
        now = self._clock()
        return [
            Notification(user_id=told.user_id, channel=channel, deliver_after=_deliver_after(told, channel, now))
            for told in recipients_of(connection, message)
            for channel in channels_for(message.event_type, defaults=defaults, preferences=told.preferences)
        ]


def _deliver_after(told: Recipient, channel: Channel, now: datetime) -> datetime | None:
    if told.quiet is None or channel is Channel.IN_APP:
        return None
    return told.quiet.end(now, told.zone)
