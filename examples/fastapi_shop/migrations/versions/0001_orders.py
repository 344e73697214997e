"""Create the table of orders."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "orders",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("customer", sa.String(100), nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
    )


def downgrade() -> None:
    op.drop_table("orders")
