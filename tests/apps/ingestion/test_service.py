"""DocumentService: every method is one transaction, on PostgreSQL, MariaDB and SQLite."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from uuid import UUID

import pytest
from sqlalchemy import Engine, select, text
from sqlalchemy.exc import DBAPIError

from apps.ingestion import documents
from apps.ingestion.database import open_engine
from apps.ingestion.documents import InvalidTransition, Status, Upload
from apps.ingestion.idempotency import KeyReused
from apps.ingestion.service import DocumentService
from apps.ingestion.tables import idempotency_keys
from pillarbox import RecordError

UPLOAD = Upload(name="a.pdf", content_type="application/pdf", file_size=1, metadata={}, uploaded_by="ada")
OTHER = Upload(name="b.pdf", content_type="application/pdf", file_size=1, metadata={}, uploaded_by="ada")

REFUSE = {
    "sqlite": "CREATE TRIGGER refuse_{0} AFTER INSERT ON {0} BEGIN SELECT RAISE(ABORT, 'refused'); END",
    "postgresql": "ALTER TABLE {0} ADD CONSTRAINT refused CHECK (false) NOT VALID",
    "mariadb": "ALTER TABLE {0} ADD CONSTRAINT refused CHECK (1 = 0)",
}


@pytest.fixture
def engine(store: str) -> Iterator[Engine]:
    engine = open_engine(store)
    yield engine
    engine.dispose()


def count(engine: Engine, table: str) -> int:
    with engine.begin() as connection:
        return int(connection.execute(text(f"SELECT count(*) FROM {table}")).scalar_one())


def counts(engine: Engine) -> tuple[int, ...]:
    return tuple(count(engine, table) for table in ("documents", "outbox_event", "idempotency_keys"))


def age_keys(engine: Engine, hours: int) -> None:
    past = {
        "sqlite": f"datetime(created_at, '-{hours} hours')",
        "postgresql": f"created_at - interval '{hours} hours'",
        "mariadb": f"created_at - INTERVAL {hours} HOUR",
    }
    with engine.begin() as connection:
        connection.execute(text(f"UPDATE idempotency_keys SET created_at = {past[engine.dialect.name]}"))


def test_a_document_and_its_event_are_committed_together(engine: Engine) -> None:
    DocumentService(engine).upload(UPLOAD, key="k")
    assert counts(engine) == (1, 1, 1)


@pytest.mark.parametrize("table", ["documents", "outbox_message", "idempotency_keys"])
def test_if_one_insert_fails_nothing_is_committed(engine: Engine, table: str) -> None:
    with engine.begin() as connection:
        connection.execute(text(REFUSE[engine.dialect.name].format(table)))
    with pytest.raises((DBAPIError, RecordError), match="refused"):
        DocumentService(engine).upload(UPLOAD, key="k")
    assert counts(engine) == (0, 0, 0)


def test_a_repeated_request_returns_the_document_as_uploaded(engine: Engine) -> None:
    service = DocumentService(engine)
    first = service.upload(UPLOAD, key="k")
    with engine.begin() as connection:
        connection.execute(text("UPDATE documents SET status = 'VALIDATED', updated_by = 'validation-service'"))
    assert service.upload(UPLOAD, key="k") == first
    assert counts(engine) == (1, 1, 1)


def test_a_key_is_valid_for_one_body(engine: Engine) -> None:
    service = DocumentService(engine)
    service.upload(UPLOAD, key="k")
    with pytest.raises(KeyReused):
        service.upload(OTHER, key="k")
    assert counts(engine) == (1, 1, 1)


def test_an_expired_key_can_be_used_again(engine: Engine) -> None:
    service = DocumentService(engine, keep_keys=timedelta(hours=24))
    service.upload(UPLOAD, key="k")
    age_keys(engine, 25)
    service.upload(OTHER, key="k")
    assert counts(engine) == (2, 2, 1)
    with pytest.raises(KeyReused):
        service.upload(UPLOAD, key="k")


def test_only_expired_keys_are_deleted(engine: Engine) -> None:
    service = DocumentService(engine, keep_keys=timedelta(hours=24))
    service.upload(UPLOAD, key="old")
    age_keys(engine, 26)
    service.upload(UPLOAD, key="new")
    assert service.delete_expired_keys() == 1
    with engine.begin() as connection:
        assert connection.execute(select(idempotency_keys.c.key)).scalars().all() == ["new"]


def test_a_document_advances_step_by_step_and_never_back(engine: Engine) -> None:
    document_id = DocumentService(engine).upload(UPLOAD).id
    asked = (Status.ENRICHED, Status.VALIDATED, Status.VALIDATED, Status.ENRICHED, Status.VALIDATED)
    assert [advance(engine, document_id, to) for to in asked] == [
        "document is UPLOADED and cannot become ENRICHED",
        Status.VALIDATED,
        "document is VALIDATED and cannot become VALIDATED",
        Status.ENRICHED,
        "document is ENRICHED and cannot become VALIDATED",
    ]
    assert DocumentService(engine).find(document_id).status == Status.ENRICHED


def advance(engine: Engine, document_id: UUID, to: Status) -> str:
    """The new status, or the error."""
    try:
        with engine.begin() as connection:
            return documents.advance(connection, document_id, to=to, by="ada").status
    except InvalidTransition as refused:
        return str(refused).replace(f" {document_id}", "")
