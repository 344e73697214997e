"""What was delivered, once per notification; for IN_APP the order in which a user hears of it.

It is written out and imports nothing of the application: what it makes stays the same whatever becomes of that.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

BIG_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
WORDS = {
    "audience": "'RESTAURANT', 'CUSTOMER', 'AGENCY', 'ADMIN'",
    "channel": "'EMAIL', 'PUSH', 'SMS', 'IN_APP'",
}


def upgrade() -> None:
    op.create_table(
        "notification_delivery",
        sa.Column("id", BIG_ID, sa.Identity(), nullable=False),
        sa.Column("audience", sa.Text(), nullable=False),
        sa.Column("notification_id", sa.BigInteger(), nullable=False),
        sa.Column("user_id", sa.BigInteger(), nullable=False),
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("event_id", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("delivered_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_notification_delivery"),
        sa.UniqueConstraint("audience", "notification_id", name="uk_notification_delivery_once"),
        *(
            sa.CheckConstraint(f"{column} IN ({words})", name=op.f(f"ck_notification_delivery_{column}"))
            for column, words in WORDS.items()
        ),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_notification_delivery_feed", "notification_delivery", ["user_id", "channel", "id"])


def downgrade() -> None:
    op.drop_table("notification_delivery")
