"""The recipients of a message and their preferences: three queries, independent of the number of recipients."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from sqlalchemy import Connection, Row, Select, func, select

from apps.notifications.domain import EVERY_EVENT, Channel, RecipientType
from apps.notifications.message import NotificationMessage
from apps.notifications.orchestration.preferences import Default, Preference
from apps.notifications.orchestration.quiet_hours import QuietHours
from apps.notifications.tables import audience_member, channel_preference, default_channel, quiet_hours, recipient

logger = logging.getLogger("notifications.recipients")

NO_RECIPIENTS = (
    "there are no recipients, so no notifications are created; "
    "add them with `python -m apps.notifications add-recipient`"
)


class NoRecipients(Exception):
    """The aggregate has no recipients. The message itself is valid and creates no notifications."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipient:
    """A user with time zone, quiet hours and preferences."""

    user_id: int
    zone: ZoneInfo
    quiet: QuietHours | None
    preferences: Sequence[Preference]


def recipients_of(connection: Connection, message: NotificationMessage) -> list[Recipient]:
    """The recipients of the message in the order of their ids; at least one.

    Raises LookupError for an unknown user, and NoRecipients for an aggregate without recipients.
    """
    rows = connection.execute(_with_quiet_hours(message)).all()
    if message.recipient_type is RecipientType.SINGLE and not rows:
        raise LookupError(f"event {message.event_id} is for user {message.user_id}, who is not among the recipients")
    if not rows:
        raise NoRecipients(
            f"event {message.event_id} ({message.event_type}) creates no notifications: {message.audience} "
            f"{message.aggregate_id} has no recipients; add them with `python -m apps.notifications add-recipient`"
        )
    chosen: dict[int, list[Preference]] = {}
    for user_id, event_type, channel, enabled in connection.execute(_preferences(message)):
        chosen.setdefault(user_id, []).append(Preference(event_type, Channel(channel), enabled))
    return [_recipient(row, chosen.get(row.user_id, ())) for row in rows]


def count_recipients(connection: Connection) -> int:
    """The number of users who belong to an audience."""
    members = select(audience_member.c.user_id).distinct().subquery()
    return connection.execute(select(func.count()).select_from(members)).scalar_one()


def defaults_of(connection: Connection, message: NotificationMessage) -> list[Default]:
    """The default channels of the message's audience."""
    asked = select(default_channel.c.event_type, default_channel.c.channel).where(
        default_channel.c.audience == message.audience,
        default_channel.c.event_type.in_([message.event_type, EVERY_EVENT]),
    )
    return [Default(event_type, Channel(channel)) for event_type, channel in connection.execute(asked)]


def _recipient_ids(message: NotificationMessage) -> Select[int]:
    """The ids of all recipients."""
    if message.recipient_type is RecipientType.SINGLE:
        return select(recipient.c.user_id).where(recipient.c.user_id == message.user_id)
    return select(audience_member.c.user_id).where(
        audience_member.c.audience == message.audience, audience_member.c.aggregate_id == message.aggregate_id
    )


def _with_quiet_hours(message: NotificationMessage) -> Select[tuple[object, ...]]:
    return (
        select(recipient.c.user_id, recipient.c.time_zone, quiet_hours.c.starts, quiet_hours.c.ends)
        .outerjoin_from(recipient, quiet_hours)
        .where(recipient.c.user_id.in_(_recipient_ids(message)))
        .order_by(recipient.c.user_id)
    )


def _preferences(message: NotificationMessage) -> Select[int, str, str, bool]:
    return select(
        channel_preference.c.user_id,
        channel_preference.c.event_type,
        channel_preference.c.channel,
        channel_preference.c.enabled,
    ).where(
        channel_preference.c.user_id.in_(_recipient_ids(message)),
        channel_preference.c.event_type.in_([message.event_type, EVERY_EVENT]),
    )


def _recipient(row: Row[tuple[object, ...]], preferences: Sequence[Preference]) -> Recipient:
    return Recipient(
        user_id=row.user_id,
        zone=_zone(row.user_id, row.time_zone),
        quiet=None if row.starts is None else QuietHours(starts=row.starts, ends=row.ends),
        preferences=preferences,
    )


def _zone(user_id: int, name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):  # an invalid setting of one user must not affect the others
        logger.warning("user %s has the unknown time zone %r; using UTC", user_id, name)
        return ZoneInfo("UTC")
