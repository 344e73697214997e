"""The tables of the application. The library creates those of the two outboxes: see `database.migrate`.

Invariants: every change here has a revision in `migrations/versions`; a test compares the two. Times are in UTC and
timezone-aware on every database.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    Dialect,
    ForeignKey,
    Identity,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    Time,
    TypeDecorator,
    UniqueConstraint,
)
from sqlalchemy.dialects import mysql
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.types import TypeEngine

from apps.notifications.domain import Audience, Channel

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
    }
)

BigId = BigInteger().with_variant(Integer(), "sqlite")
"""SQLite generates ids only for INTEGER columns."""
Json = JSON().with_variant(JSONB(), "postgresql")
TimeOfDay = Time().with_variant(mysql.TIME(fsp=6), "mariadb")


def words(longest: int | None = None) -> TypeEngine[str]:
    """Text. MariaDB needs the greatest length in an index: that of an event id or type in the outbox, for example."""
    return Text().with_variant(mysql.LONGTEXT() if longest is None else mysql.VARCHAR(longest), "mariadb")


class UtcTime(TypeDecorator[datetime]):
    """A time. SQLite and MariaDB store no time zone: values are stored and returned in UTC."""

    impl = DateTime(timezone=True).with_variant(mysql.DATETIME(fsp=6), "mariadb")
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.utcoffset() is None:
            raise ValueError(f"{value} has no time zone; pass for example datetime.now(UTC)")
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def _one_of(column: str, words: Sequence[str]) -> CheckConstraint:
    return CheckConstraint(f"{column} IN ({', '.join(repr(str(word)) for word in words)})", name=column)


def _id() -> Column[Any]:
    return Column("id", BigId, Identity(), primary_key=True)


def _audience() -> tuple[Column[Any], CheckConstraint]:
    return Column("audience", words(20), primary_key=True), _one_of("audience", list(Audience))


def _channel(name: str = "channel", *, key: bool = True) -> tuple[Column[Any], CheckConstraint]:
    return Column(name, words(20), primary_key=key, nullable=False), _one_of(name, list(Channel))


def _user() -> Column[Any]:
    """The recipient that the row belongs to."""
    return Column("user_id", BigId, ForeignKey("recipient.user_id"), primary_key=True, autoincrement=False)


# -- tables of the producers -----------------------------------------------------------------------------------------

reservation = Table(
    "reservation",
    metadata,
    _id(),
    Column("restaurant_id", BigInteger, nullable=False),
    Column("guest_name", words(), nullable=False),
    Column("party_size", Integer, nullable=False),
    Column("reserved_for", UtcTime, nullable=False),
    Column("created_at", UtcTime, nullable=False),
)

customer_order = Table(
    "customer_order",
    metadata,
    _id(),
    Column("customer_id", BigInteger, nullable=False),
    Column("user_id", BigInteger, nullable=False),
    Column("total_cents", BigInteger, nullable=False),
    Column("created_at", UtcTime, nullable=False),
)

account = Table(
    "account",
    metadata,
    _id(),
    Column("agency_id", BigInteger, nullable=False),
    Column("name", words(), nullable=False),
    Column("email", words(320), nullable=False),
    Column("created_at", UtcTime, nullable=False),
    UniqueConstraint("email"),
)

# -- recipients and their preferences --------------------------------------------------------------------------------

recipient = Table(
    "recipient",
    metadata,
    Column("user_id", BigId, primary_key=True, autoincrement=False),
    Column("name", words(), nullable=False),
    Column("email", words()),
    Column("phone", words()),
    Column("push_token", words()),
    Column("time_zone", words(), nullable=False),
)

audience_member = Table(
    "audience_member",
    metadata,
    *_audience(),
    Column("aggregate_id", BigInteger, primary_key=True, autoincrement=False),
    _user(),
    Index("ix_audience_member_user_id", "user_id"),
)

channel_preference = Table(
    "channel_preference",
    metadata,
    _user(),
    Column("event_type", words(255), primary_key=True),
    *_channel(),
    Column("enabled", Boolean, nullable=False),
)

quiet_hours = Table(
    "quiet_hours",
    metadata,
    _user(),
    Column("starts", TimeOfDay, nullable=False),
    Column("ends", TimeOfDay, nullable=False),
)

default_channel = Table(
    "default_channel",
    metadata,
    *_audience(),
    Column("event_type", words(255), primary_key=True),
    *_channel(),
)

# -- notifications ---------------------------------------------------------------------------------------------------


def _notifications(name: str) -> Table:
    """The table of one audience. The unique constraint makes notifications idempotent."""
    return Table(
        name,
        metadata,
        _id(),
        Column("event_id", words(200), nullable=False),
        Column("user_id", BigInteger, nullable=False),
        *_channel("notification_type", key=False),
        Column("event_type", words(), nullable=False),
        Column("aggregate_id", BigInteger, nullable=False),
        Column("title", words(), nullable=False),
        Column("body", words(), nullable=False),
        Column("payload", Json, nullable=False),
        Column("deliver_after", UtcTime),
        Column("created_at", UtcTime, nullable=False),
        Column("read_at", UtcTime),
        UniqueConstraint("event_id", "user_id", "notification_type", name=f"uk_{name}_idempotency"),
        Index(f"ix_{name}_newest", "user_id", "created_at", "id"),
    )


restaurant_user_notification = _notifications("restaurant_user_notification")
customer_notification = _notifications("customer_notification")
agency_user_notification = _notifications("agency_user_notification")
admin_notification = _notifications("admin_notification")

NOTIFICATIONS: dict[Audience, Table] = {
    Audience.RESTAURANT: restaurant_user_notification,
    Audience.CUSTOMER: customer_notification,
    Audience.AGENCY: agency_user_notification,
    Audience.ADMIN: admin_notification,
}

# -- deliveries ------------------------------------------------------------------------------------------------------

notification_delivery = Table(
    "notification_delivery",
    metadata,
    _id(),
    Column("audience", words(20), nullable=False),
    _one_of("audience", list(Audience)),
    Column("notification_id", BigInteger, nullable=False),
    Column("user_id", BigInteger, nullable=False),
    *_channel(key=False),
    Column("event_id", words(200), nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("delivered_at", UtcTime, nullable=False),
    UniqueConstraint("audience", "notification_id", name="uk_notification_delivery_once"),
    Index("ix_notification_delivery_feed", "user_id", "channel", "id"),
    sqlite_autoincrement=True,
)
"""One row per completed delivery; `event_id` is the id of the delivery's event. The ids of one user's IN_APP rows rise
in the order of their commits, so that a follower of the live feed misses none: see `delivery/log.py`."""
