"""One response per Idempotency-Key: the key is inserted in the transaction of the upload.

A second request with the same key waits in the database until the first commits or rolls back, and then returns the
document of the first. A key past its retention period is treated as new.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, case, delete, select
from sqlalchemy.dialects import mysql, postgresql, sqlite

from apps.ingestion.documents import Upload
from apps.ingestion.tables import idempotency_keys

_GRACE = timedelta(hours=1)
"""Keys are deleted this much later than they expire, so that `claim` still finds a key that it just conflicted with."""


class KeyReused(Exception):
    """The key was used with another body before."""


def fingerprint(upload: Upload) -> str:
    """Equal for equal uploads."""
    return hashlib.sha256(json.dumps(asdict(upload), sort_keys=True).encode()).hexdigest()


def claim(connection: Connection, key: str, upload: Upload, document_id: UUID, *, keep: timedelta) -> UUID | None:
    """Claim the key for this document; returns None, or the document that has claimed it before. Raises KeyReused."""
    now, print_ = datetime.now(UTC), fingerprint(upload)
    row = {"key": key, "fingerprint": print_, "document_id": document_id, "created_at": now}
    _insert(connection, row, expired=now - keep)
    known = connection.execute(select(idempotency_keys).where(idempotency_keys.c.key == key)).one()
    if known.document_id == document_id:
        return None
    if known.fingerprint != print_:
        raise KeyReused("this Idempotency-Key was used with another body; use a new key for a new upload")
    earlier: UUID = known.document_id
    return earlier


def _insert(connection: Connection, row: dict[str, Any], *, expired: datetime) -> None:
    """Insert the row of a key, or replace one that was created before `expired`."""
    is_expired = idempotency_keys.c.created_at < expired
    if connection.dialect.name == "mariadb":
        # It assigns from left to right: the time that all depend on comes last.
        names = sorted(row, key=lambda name: name == "created_at")
        statement = mysql.insert(idempotency_keys).values(row)
        new, old = statement.inserted, idempotency_keys.c
        replaced = [(name, case((is_expired, new[name]), else_=old[name])) for name in names]
        connection.execute(statement.on_duplicate_key_update(replaced))
        return
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    connection.execute(
        insert(idempotency_keys).values(row).on_conflict_do_update(index_elements=["key"], set_=row, where=is_expired)
    )


def delete_expired(connection: Connection, *, keep: timedelta) -> int:
    """Delete expired keys; returns how many."""
    cutoff = datetime.now(UTC) - keep - _GRACE
    return connection.execute(delete(idempotency_keys).where(idempotency_keys.c.created_at < cutoff)).rowcount
