"""One answer per Idempotency-Key: the key is written in the transaction of what it guards.

Whoever comes second with a key waits, in the database, until the first has committed or rolled back, and is then told
which document it made. A key that is older than the retention counts as not there.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from uuid import UUID

from sqlalchemy import Connection, delete, select
from sqlalchemy.dialects import postgresql, sqlite

from apps.ingestion.documents import Upload
from apps.ingestion.tables import idempotency_keys

_GRACE = timedelta(hours=1)
"""Keys are removed that much later than they expire: nobody who has just met one finds it gone."""


class KeyReused(Exception):
    """The key came with another body before."""


def fingerprint(upload: Upload) -> str:
    """Equal for equal uploads."""
    return hashlib.sha256(json.dumps(asdict(upload), sort_keys=True).encode()).hexdigest()


def claim(connection: Connection, key: str, upload: Upload, document_id: UUID, *, keep: timedelta) -> UUID | None:
    """None: the key is new and belongs to this document now; else the document that it belongs to. Raises KeyReused."""
    now, print_ = datetime.now(UTC), fingerprint(upload)
    row = {"key": key, "fingerprint": print_, "document_id": document_id, "created_at": now}
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    claimed = connection.execute(
        insert(idempotency_keys)
        .values(row)
        .on_conflict_do_update(index_elements=["key"], set_=row, where=idempotency_keys.c.created_at < now - keep)
        .returning(idempotency_keys.c.key)
    ).one_or_none()
    if claimed is not None:
        return None
    known = connection.execute(select(idempotency_keys).where(idempotency_keys.c.key == key)).one()
    if known.fingerprint != print_:
        raise KeyReused("this Idempotency-Key was used with another body; take a new key for a new upload")
    earlier: UUID = known.document_id
    return earlier


def forget(connection: Connection, *, keep: timedelta) -> int:
    """Remove what has expired; returns how many."""
    cutoff = datetime.now(UTC) - keep - _GRACE
    return connection.execute(delete(idempotency_keys).where(idempotency_keys.c.created_at < cutoff)).rowcount
