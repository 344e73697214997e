"""Attendance: parents submit absence notices. It depends on the outbox and on no other module."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

from sqlalchemy.orm import Mapped, Session, mapped_column, sessionmaker

from examples.school.tables import Base
from pillarbox import Event, Outbox

ABSENCE_NOTICE_SUBMITTED = "attendance.absence_notice_submitted"


class AbsenceNotice(Base):
    __tablename__ = "absence_notice"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    student_id: Mapped[UUID]


class AttendanceService:
    def __init__(self, sessions: sessionmaker[Session], outbox: Outbox) -> None:
        self._sessions = sessions
        self._outbox = outbox

    def submit_absence_notice(
        self,
        absence_notice_id: UUID,
        student_id: UUID,
        *,
        correlation_id: str | None = None,
        trace_id: str | None = None,
    ) -> None:
        """The notice and its event in one transaction."""
        with self._sessions.begin() as session:
            session.add(AbsenceNotice(id=absence_notice_id, student_id=student_id))
            self._outbox.record(
                session,
                Event(
                    ABSENCE_NOTICE_SUBMITTED,
                    {"absenceNoticeId": absence_notice_id, "studentId": student_id},
                    key=str(student_id),  # a handler gets what concerns one student in order
                    occurred_at=datetime.now(UTC),
                    correlation_id=correlation_id,
                    trace_id=trace_id,
                ),
            )
