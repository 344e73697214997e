"""The users of the demo and their channels. The rows of the database and the expectations of the verification are both
derived from this list, not from the code under test."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from sqlalchemy import Engine, insert

from apps.notifications.domain import EVERY_EVENT, Audience, Channel
from apps.notifications.tables import audience_member, channel_preference, default_channel, quiet_hours, recipient

EMAIL, PUSH, SMS, IN_APP = Channel


class Expected(NamedTuple):
    """An expected notification, identified by its subject."""

    audience: Audience
    subject: int
    """The id of the reservation, order or account."""
    user_id: int
    channel: Channel


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """A user, and the channels that reach them."""

    user_id: int
    name: str
    audience: Audience
    aggregate_id: int
    channels: frozenset[Channel]
    asleep: bool = False
    """In quiet hours: everything but IN_APP waits until they end."""


DEFAULTS = {
    Audience.RESTAURANT: {EMAIL, PUSH, IN_APP},
    Audience.CUSTOMER: {EMAIL, SMS},
    Audience.AGENCY: {EMAIL, IN_APP},
    Audience.ADMIN: {EMAIL, PUSH},
}


def _user(
    user_id: int, name: str, audience: Audience, aggregate_id: int, *channels: Channel, asleep: bool = False
) -> User:
    return User(
        user_id=user_id,
        name=name,
        audience=audience,
        aggregate_id=aggregate_id,
        channels=frozenset(channels),
        asleep=asleep,
    )


USERS = (
    _user(11, "Ada", Audience.RESTAURANT, 1, EMAIL, PUSH, IN_APP),
    _user(12, "Ben", Audience.RESTAURANT, 1, PUSH, IN_APP),  # wants no mail
    _user(13, "Cleo", Audience.RESTAURANT, 2, EMAIL, PUSH, IN_APP, asleep=True),
    _user(21, "Dora", Audience.CUSTOMER, 1, EMAIL, SMS),
    _user(22, "Emil", Audience.CUSTOMER, 1, EMAIL, PUSH, IN_APP),  # wants no SMS, and more than usual
    _user(31, "Fritz", Audience.AGENCY, 1, EMAIL, IN_APP),
    _user(41, "Gina", Audience.ADMIN, 1, EMAIL, PUSH),
    _user(42, "Hugo", Audience.ADMIN, 1),  # wants no notifications
)
CUSTOMERS = [user for user in USERS if user.audience is Audience.CUSTOMER]


def of(audience: Audience, aggregate_id: int) -> list[User]:
    """All users of an aggregate."""
    return [user for user in USERS if (user.audience, user.aggregate_id) == (audience, aggregate_id)]


def expected(subject: int, *recipients: User) -> Iterator[Expected]:
    """The expected notifications of one event."""
    for user in recipients:
        for channel in user.channels:
            yield Expected(user.audience, subject, user.user_id, channel)


def insert_users(engine: Engine) -> None:
    """Insert all users; the difference to the defaults of their audience becomes preferences."""
    now = datetime.now(UTC)
    with engine.begin() as connection:
        connection.execute(
            insert(recipient),
            [
                {
                    "user_id": user.user_id,
                    "name": user.name,
                    "email": f"{user.name.lower()}@example.org",
                    "phone": f"+39 06 {user.user_id}",
                    "push_token": f"token-{user.user_id}",
                    "time_zone": "UTC",
                }
                for user in USERS
            ],
        )
        connection.execute(
            insert(audience_member),
            [{"audience": user.audience, "aggregate_id": user.aggregate_id, "user_id": user.user_id} for user in USERS],
        )
        connection.execute(
            insert(default_channel),
            [
                {"audience": audience, "event_type": EVERY_EVENT, "channel": channel}
                for audience, channels in DEFAULTS.items()
                for channel in channels
            ],
        )
        connection.execute(
            insert(channel_preference),
            [
                {
                    "user_id": user.user_id,
                    "event_type": EVERY_EVENT,
                    "channel": channel,
                    "enabled": channel in user.channels,
                }
                for user in USERS
                for channel in user.channels ^ DEFAULTS[user.audience]
            ],
        )
        night = {"starts": (now - timedelta(hours=1)).time(), "ends": (now + timedelta(hours=8)).time()}
        connection.execute(insert(quiet_hours), [{"user_id": user.user_id, **night} for user in USERS if user.asleep])
