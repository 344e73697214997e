"""Grades: teachers publish them. It depends on the outbox and on no other module."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID, uuid4

from sqlalchemy.orm import Mapped, Session, mapped_column, sessionmaker

from examples.school.tables import Base
from pillarbox import Event, Outbox

GRADE_PUBLISHED = "grades.grade_published"
BEST, WORST = 1, 6


class Grade(Base):
    __tablename__ = "grade"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    student_id: Mapped[UUID]
    subject: Mapped[str]
    mark: Mapped[int]


class NoSuchMark(Exception):
    """Marks go from 1 to 6."""


class GradesService:
    def __init__(self, sessions: sessionmaker[Session], outbox: Outbox) -> None:
        self._sessions = sessions
        self._outbox = outbox

    def publish_grades(self, subject: str, marks: Mapping[UUID, int]) -> None:
        """A whole class in one transaction, marks by student. Raises NoSuchMark: then none is published."""
        with self._sessions.begin() as session:
            for student_id, mark in marks.items():
                grade_id = uuid4()
                session.add(Grade(id=grade_id, student_id=student_id, subject=subject, mark=mark))
                payload = {"gradeId": grade_id, "studentId": student_id, "subject": subject, "mark": mark}
                self._outbox.record(session, Event(GRADE_PUBLISHED, payload, key=str(student_id)))
                if not BEST <= mark <= WORST:
                    raise NoSuchMark(f"{mark} in {subject}")
