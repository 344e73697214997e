"""Who is in the demo. Their channels are written down here, and everything else follows: the rows of the database, and
what the verdict expects. Nobody asks the code that is on trial."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from sqlalchemy import Engine, insert

from apps.notifications.tables import audience_member, channel_preference, default_channel, quiet_hours, recipient
from apps.notifications.words import EVERY_EVENT, Audience, Channel

EMAIL, PUSH, SMS, IN_APP = Channel


class Told(NamedTuple):
    """One notification, by what it is about."""

    audience: Audience
    subject: int
    """The id of the reservation, the order or the account."""
    user_id: int
    channel: Channel


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """A user, and the channels that reach them."""

    user_id: int
    name: str
    audience: Audience
    aggregate_id: int
    channels: frozenset[Channel]
    asleep: bool = False
    """It is night where they are: everything but IN_APP waits for the morning."""


DEFAULTS = {
    Audience.RESTAURANT: {EMAIL, PUSH, IN_APP},
    Audience.CUSTOMER: {EMAIL, SMS},
    Audience.AGENCY: {EMAIL, IN_APP},
    Audience.ADMIN: {EMAIL, PUSH},
}


def _person(
    user_id: int, name: str, audience: Audience, aggregate_id: int, *channels: Channel, asleep: bool = False
) -> Person:
    return Person(
        user_id=user_id,
        name=name,
        audience=audience,
        aggregate_id=aggregate_id,
        channels=frozenset(channels),
        asleep=asleep,
    )


CAST = (
    _person(11, "Ada", Audience.RESTAURANT, 1, EMAIL, PUSH, IN_APP),
    _person(12, "Ben", Audience.RESTAURANT, 1, PUSH, IN_APP),  # wants no mail
    _person(13, "Cleo", Audience.RESTAURANT, 2, EMAIL, PUSH, IN_APP, asleep=True),
    _person(21, "Dora", Audience.CUSTOMER, 1, EMAIL, SMS),
    _person(22, "Emil", Audience.CUSTOMER, 1, EMAIL, PUSH, IN_APP),  # wants no SMS, and more than usual
    _person(31, "Fritz", Audience.AGENCY, 1, EMAIL, IN_APP),
    _person(41, "Gina", Audience.ADMIN, 1, EMAIL, PUSH),
    _person(42, "Hugo", Audience.ADMIN, 1),  # wants to be left alone
)
CUSTOMERS = [person for person in CAST if person.audience is Audience.CUSTOMER]


def of(audience: Audience, aggregate_id: int) -> list[Person]:
    """Everybody of an aggregate."""
    return [person for person in CAST if (person.audience, person.aggregate_id) == (audience, aggregate_id)]


def expected(subject: int, *people: Person) -> Iterator[Told]:
    """What these people are told of one thing that happened."""
    for person in people:
        for channel in person.channels:
            yield Told(person.audience, subject, person.user_id, channel)


def settle(engine: Engine) -> None:
    """Write them down. A preference is whatever differs from what their audience gets."""
    now = datetime.now(UTC)
    with engine.begin() as connection:
        connection.execute(
            insert(recipient),
            [
                {
                    "user_id": person.user_id,
                    "name": person.name,
                    "email": f"{person.name.lower()}@example.org",
                    "phone": f"+39 06 {person.user_id}",
                    "push_token": f"token-{person.user_id}",
                    "time_zone": "UTC",
                }
                for person in CAST
            ],
        )
        connection.execute(
            insert(audience_member),
            [
                {"audience": person.audience, "aggregate_id": person.aggregate_id, "user_id": person.user_id}
                for person in CAST
            ],
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
                    "user_id": person.user_id,
                    "event_type": EVERY_EVENT,
                    "channel": channel,
                    "enabled": channel in person.channels,
                }
                for person in CAST
                for channel in person.channels ^ DEFAULTS[person.audience]
            ],
        )
        night = {"starts": (now - timedelta(hours=1)).time(), "ends": (now + timedelta(hours=8)).time()}
        connection.execute(
            insert(quiet_hours), [{"user_id": person.user_id, **night} for person in CAST if person.asleep]
        )
