"""The school example, on SQLite and PostgreSQL: modules that know each other by events only."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.exc import IntegrityError

from examples.school.grades import NoSuchMark
from examples.school.school import School

ADA, BEN = uuid4(), uuid4()

Notices = list[tuple[UUID, str]]


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/school.db"
    return str(request.getfixturevalue("postgres_url"))


@pytest.fixture
def notices() -> Notices:
    return []


@pytest.fixture
def school(url: str, notices: Notices) -> School:
    return School(url, lambda student, said: notices.append((student, said)))


def query(url: str, statement: str) -> Sequence[Any]:
    engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    with engine.connect() as connection:
        rows = connection.execute(text(statement)).all()
    engine.dispose()
    return rows


async def test_parents_are_notified_of_committed_events(school: School, notices: Notices, url: str) -> None:
    notice = uuid4()
    async with school:
        school.attendance.submit_absence_notice(notice, ADA, correlation_id="req-123", trace_id="trace-456")
        school.grades.publish_grades("mathematics", {ADA: 1, BEN: 2})
        await school.relay().run_until_empty()
    assert {(student, said) for student, said in notices} == {
        (ADA, f"absence notice {notice} was received"),
        (ADA, "mathematics: 1"),
        (BEN, "mathematics: 2"),
    }
    assert query(url, "SELECT status, COUNT(*) FROM outbox_event GROUP BY status") == [("PUBLISHED", 3)]
    metadata = (
        "SELECT correlation_id, trace_id FROM outbox_event WHERE event_type = 'attendance.absence_notice_submitted'"
    )
    assert query(url, metadata) == [("req-123", "trace-456")]


async def test_no_parent_is_notified_of_a_rollback(school: School, notices: Notices, url: str) -> None:
    notice = uuid4()
    async with school:
        with pytest.raises(NoSuchMark):
            school.grades.publish_grades("music", {ADA: 2, BEN: 7})
        school.attendance.submit_absence_notice(notice, ADA)
        with pytest.raises(IntegrityError):
            school.attendance.submit_absence_notice(notice, BEN)
        await school.relay().run_until_empty()
    assert [student for student, _ in notices] == [ADA]
    assert query(url, "SELECT COUNT(*) FROM grade") == [(0,)]


async def test_a_duplicate_event_notifies_the_parents_once(school: School, notices: Notices) -> None:
    async with school:
        for _ in range(2):
            school.notifications.notify("event-1", ADA, "hello")
    assert notices == [(ADA, "hello")]


async def test_an_unavailable_gateway_is_retried_after_half_a_minute(url: str) -> None:
    def fail(student: UUID, text: str) -> None:
        raise ConnectionError("the gateway hung up")

    async with School(url, fail) as school:
        school.attendance.submit_absence_notice(uuid4(), ADA)
        before = datetime.now(UTC)
        await school.relay().run_until_empty()
        after = datetime.now(UTC)
    statement = "SELECT status, attempts, last_error, next_retry_at FROM outbox_event"
    [(status, attempts, error, next_retry)] = query(url, statement)
    assert (status, attempts) == ("PENDING", 1)
    assert "ConnectionError: the gateway hung up" in error
    if isinstance(next_retry, str):
        next_retry = datetime.fromisoformat(next_retry).replace(tzinfo=UTC)
    assert before + timedelta(seconds=29) <= next_retry <= after + timedelta(seconds=61)
    assert query(url, "SELECT * FROM outbox_event WHERE status = 'FAILED' ORDER BY occurred_at DESC") == []
