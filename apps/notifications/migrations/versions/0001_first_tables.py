"""The first tables: the producers' own, recipients and their preferences, and a table of notifications per audience.

It is written out and imports nothing of the application: what it makes stays the same whatever becomes of that.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.types import TypeEngine

revision = "0001"
down_revision = None

AUDIENCES = "'RESTAURANT', 'CUSTOMER', 'AGENCY', 'ADMIN'"
CHANNELS = "'EMAIL', 'PUSH', 'SMS', 'IN_APP'"
NOTIFICATIONS = (
    "restaurant_user_notification",
    "customer_notification",
    "agency_user_notification",
    "admin_notification",
)

BIG_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
JSON = sa.JSON().with_variant(JSONB(), "postgresql")
MOMENT = sa.DateTime(timezone=True).with_variant(mysql.DATETIME(fsp=6), "mariadb")
TIME = sa.Time().with_variant(mysql.TIME(fsp=6), "mariadb")
# Text is compared as PostgreSQL does it: case and trailing spaces count.
MARIADB = {"mariadb_engine": "InnoDB", "mariadb_charset": "utf8mb4", "mariadb_collate": "utf8mb4_nopad_bin"}


def upgrade() -> None:
    _make_producers_tables()
    _make_recipients()
    for table in NOTIFICATIONS:
        _make_notifications(table)


def downgrade() -> None:
    for table in (*NOTIFICATIONS, "default_channel", "quiet_hours", "channel_preference", "audience_member"):
        op.drop_table(table)
    for table in ("recipient", "account", "customer_order", "reservation"):
        op.drop_table(table)


def _make_producers_tables() -> None:
    _make_table(
        "reservation",
        _id(),
        sa.Column("restaurant_id", sa.BigInteger(), nullable=False),
        sa.Column("guest_name", _text(), nullable=False),
        sa.Column("party_size", sa.Integer(), nullable=False),
        sa.Column("reserved_for", MOMENT, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_reservation"),
    )
    _make_table(
        "customer_order",
        _id(),
        sa.Column("customer_id", sa.BigInteger(), nullable=False),
        sa.Column("user_id", sa.BigInteger(), nullable=False),
        sa.Column("total_cents", sa.BigInteger(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_customer_order"),
    )
    _make_table(
        "account",
        _id(),
        sa.Column("agency_id", sa.BigInteger(), nullable=False),
        sa.Column("name", _text(), nullable=False),
        sa.Column("email", _text(320), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_account"),
        sa.UniqueConstraint("email", name="uq_account_email"),
    )


def _make_recipients() -> None:
    _make_table(
        "recipient",
        sa.Column("user_id", BIG_ID, autoincrement=False, nullable=False),
        sa.Column("name", _text(), nullable=False),
        sa.Column("email", _text()),
        sa.Column("phone", _text()),
        sa.Column("push_token", _text()),
        sa.Column("time_zone", _text(), nullable=False),
        sa.PrimaryKeyConstraint("user_id", name="pk_recipient"),
    )
    _make_table(
        "audience_member",
        sa.Column("audience", _text(20), nullable=False),
        sa.Column("aggregate_id", sa.BigInteger(), autoincrement=False, nullable=False),
        *_of_recipient("audience_member"),
        sa.PrimaryKeyConstraint("audience", "aggregate_id", "user_id", name="pk_audience_member"),
        _one_of("audience_member", "audience", AUDIENCES),
    )
    _make_index("ix_audience_member_user_id", "audience_member", ["user_id"])
    _make_table(
        "channel_preference",
        *_of_recipient("channel_preference"),
        sa.Column("event_type", _text(255), nullable=False),
        sa.Column("channel", _text(20), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("user_id", "event_type", "channel", name="pk_channel_preference"),
        _one_of("channel_preference", "channel", CHANNELS),
    )
    _make_table(
        "quiet_hours",
        *_of_recipient("quiet_hours"),
        sa.Column("starts", TIME, nullable=False),
        sa.Column("ends", TIME, nullable=False),
        sa.PrimaryKeyConstraint("user_id", name="pk_quiet_hours"),
    )
    _make_table(
        "default_channel",
        sa.Column("audience", _text(20), nullable=False),
        sa.Column("event_type", _text(255), nullable=False),
        sa.Column("channel", _text(20), nullable=False),
        sa.PrimaryKeyConstraint("audience", "event_type", "channel", name="pk_default_channel"),
        _one_of("default_channel", "audience", AUDIENCES),
        _one_of("default_channel", "channel", CHANNELS),
    )


def _make_notifications(table: str) -> None:
    _make_table(
        table,
        _id(),
        sa.Column("event_id", _text(200), nullable=False),
        sa.Column("user_id", sa.BigInteger(), nullable=False),
        sa.Column("notification_type", _text(20), nullable=False),
        sa.Column("event_type", _text(), nullable=False),
        sa.Column("aggregate_id", sa.BigInteger(), nullable=False),
        sa.Column("title", _text(), nullable=False),
        sa.Column("body", _text(), nullable=False),
        sa.Column("payload", JSON, nullable=False),
        sa.Column("deliver_after", MOMENT),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("read_at", MOMENT),
        sa.PrimaryKeyConstraint("id", name=f"pk_{table}"),
        sa.UniqueConstraint("event_id", "user_id", "notification_type", name=f"uk_{table}_idempotency"),
        _one_of(table, "notification_type", CHANNELS),
    )
    _make_index(f"ix_{table}_newest", table, ["user_id", "created_at", "id"])


def _make_table(name: str, *columns: sa.Column[Any] | sa.Constraint) -> None:
    op.create_table(name, *columns, if_not_exists=_repeats(), **MARIADB)


def _make_index(name: str, table: str, columns: list[str]) -> None:
    op.create_index(name, table, columns, if_not_exists=_repeats())


def _repeats() -> bool:
    """Whether tables of an interrupted migration may exist: MariaDB commits each statement."""
    return op.get_bind().dialect.name == "mariadb"


def _text(longest: int | None = None) -> TypeEngine[str]:
    return sa.Text().with_variant(mysql.LONGTEXT() if longest is None else mysql.VARCHAR(longest), "mariadb")


def _id() -> sa.Column[Any]:
    return sa.Column("id", BIG_ID, sa.Identity(), nullable=False)


def _of_recipient(table: str) -> tuple[sa.Column[Any], sa.ForeignKeyConstraint]:
    return (
        sa.Column("user_id", BIG_ID, autoincrement=False, nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["recipient.user_id"], name=f"fk_{table}_user_id"),
    )


def _one_of(table: str, column: str, words: str) -> sa.CheckConstraint:
    return sa.CheckConstraint(f"{column} IN ({words})", name=op.f(f"ck_{table}_{column}"))
