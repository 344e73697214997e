"""The business tables, the same on PostgreSQL, MariaDB and SQLite. A change here needs a migration."""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy import (
    JSON,
    BigInteger,
    CheckConstraint,
    Column,
    DateTime,
    Dialect,
    Index,
    MetaData,
    String,
    Table,
    TypeDecorator,
    Uuid,
)
from sqlalchemy.dialects import mysql


class UtcTime(TypeDecorator[datetime]):
    """A time. SQLite and MariaDB store no offset, so values are converted to UTC when written and read."""

    impl = DateTime(timezone=True).with_variant(mysql.DATETIME(fsp=6), "mariadb")
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


# A native type only from MariaDB 10.7 on: the columns would depend on the version that they were created with.
Id = Uuid().with_variant(Uuid(native_uuid=False), "mariadb")

metadata = MetaData()

documents = Table(
    "documents",
    metadata,
    Column("id", Id, primary_key=True),
    Column("name", String(255), nullable=False),
    Column("content_type", String(255), nullable=False),
    Column("file_size", BigInteger(), nullable=False),
    Column("status", String(20), nullable=False),
    Column("metadata", JSON(), nullable=False),  # not JSONB, which would not keep the order of the keys
    Column("created_at", UtcTime(), nullable=False),
    Column("updated_at", UtcTime(), nullable=False),
    Column("created_by", String(255), nullable=False),
    Column("updated_by", String(255), nullable=False),
    CheckConstraint("status IN ('UPLOADED', 'VALIDATED', 'ENRICHED')", name="documents_status"),
    CheckConstraint("file_size >= 0", name="documents_file_size"),
    Index("documents_newest", "created_at", "id"),
)

idempotency_keys = Table(
    "idempotency_keys",
    metadata,
    Column("key", String(200), primary_key=True),
    Column("fingerprint", String(64), nullable=False),
    Column("document_id", Id, nullable=False),
    Column("created_at", UtcTime(), nullable=False),
    Index("idempotency_keys_age", "created_at"),
)
