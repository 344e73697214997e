"""documents and idempotency_keys"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

ID = sa.Uuid().with_variant(sa.Uuid(native_uuid=False), "mariadb")
MOMENT = sa.DateTime(timezone=True).with_variant(mysql.DATETIME(fsp=6), "mariadb")
# Text is compared as PostgreSQL does it: case and trailing spaces count.
MARIADB = {"mariadb_engine": "InnoDB", "mariadb_charset": "utf8mb4", "mariadb_collate": "utf8mb4_nopad_bin"}


def upgrade() -> None:
    # MariaDB commits each statement, so that tables of an interrupted migration may exist.
    repeats = op.get_bind().dialect.name == "mariadb"
    op.create_table(
        "documents",
        sa.Column("id", ID, primary_key=True),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("content_type", sa.String(255), nullable=False),
        sa.Column("file_size", sa.BigInteger(), nullable=False),
        sa.Column("status", sa.String(20), nullable=False),
        sa.Column("metadata", sa.JSON(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.Column("created_by", sa.String(255), nullable=False),
        sa.Column("updated_by", sa.String(255), nullable=False),
        sa.CheckConstraint("status IN ('UPLOADED', 'VALIDATED', 'ENRICHED')", name="documents_status"),
        sa.CheckConstraint("file_size >= 0", name="documents_file_size"),
        if_not_exists=repeats,
        **MARIADB,
    )
    op.create_index("documents_newest", "documents", ["created_at", "id"], if_not_exists=repeats)
    op.create_table(
        "idempotency_keys",
        sa.Column("key", sa.String(200), primary_key=True),
        sa.Column("fingerprint", sa.String(64), nullable=False),
        sa.Column("document_id", ID, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        if_not_exists=repeats,
        **MARIADB,
    )
    op.create_index("idempotency_keys_age", "idempotency_keys", ["created_at"], if_not_exists=repeats)
