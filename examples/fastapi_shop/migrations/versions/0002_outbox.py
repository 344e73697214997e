"""Create the tables of the outbox."""

from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.pillarbox_upgrade("0002")


def downgrade() -> None:
    op.pillarbox_downgrade("base")
