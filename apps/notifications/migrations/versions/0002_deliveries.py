"""What was delivered, once per notification; for IN_APP the order in which a user hears of it.

It is written out and imports nothing of the application: what it makes stays the same whatever becomes of that.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0002"
down_revision = "0001"

BIG_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
WORD = sa.Text().with_variant(mysql.VARCHAR(20), "mariadb")
EVENT_ID = sa.Text().with_variant(mysql.VARCHAR(200), "mariadb")
MOMENT = sa.DateTime(timezone=True).with_variant(mysql.DATETIME(fsp=6), "mariadb")
# Text is compared as PostgreSQL does it: case and trailing spaces count.
MARIADB = {"mariadb_engine": "InnoDB", "mariadb_charset": "utf8mb4", "mariadb_collate": "utf8mb4_nopad_bin"}
WORDS = {
    "audience": "'RESTAURANT', 'CUSTOMER', 'AGENCY', 'ADMIN'",
    "channel": "'EMAIL', 'PUSH', 'SMS', 'IN_APP'",
}


def upgrade() -> None:
    # MariaDB commits each statement, so that the table of an interrupted migration may exist.
    repeats = op.get_bind().dialect.name == "mariadb"
    op.create_table(
        "notification_delivery",
        sa.Column("id", BIG_ID, sa.Identity(), nullable=False),
        sa.Column("audience", WORD, nullable=False),
        sa.Column("notification_id", sa.BigInteger(), nullable=False),
        sa.Column("user_id", sa.BigInteger(), nullable=False),
        sa.Column("channel", WORD, nullable=False),
        sa.Column("event_id", EVENT_ID, nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("delivered_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_notification_delivery"),
        sa.UniqueConstraint("audience", "notification_id", name="uk_notification_delivery_once"),
        *(
            sa.CheckConstraint(f"{column} IN ({words})", name=op.f(f"ck_notification_delivery_{column}"))
            for column, words in WORDS.items()
        ),
        if_not_exists=repeats,
        sqlite_autoincrement=True,
        **MARIADB,
    )
    op.create_index(
        *("ix_notification_delivery_feed", "notification_delivery", ["user_id", "channel", "id"]),
        if_not_exists=repeats,
    )


def downgrade() -> None:
    op.drop_table("notification_delivery")
