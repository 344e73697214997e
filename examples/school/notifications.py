"""Notifications: handlers notify parents, by the type of the event. They depend on events and on no other module."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from sqlalchemy.orm import Mapped, Session, mapped_column, sessionmaker

from examples.school.tables import Base
from pillarbox import Handlers
from pillarbox.transports.handlers import HandlerContext, ReceivedEvent

Send = Callable[[UUID, str], None]
"""Sends a text to the parents of a student. If it raises, the relay retries."""


class Notification(Base):
    """A sent notification; the event id detects duplicates."""

    __tablename__ = "notification"

    event_id: Mapped[str] = mapped_column(primary_key=True)
    student_id: Mapped[UUID]
    text: Mapped[str]


class NotificationService:
    """Notifies parents once per event, however often a handler is called with it.

    Only a crash between sending and committing notifies them twice; only the receiver can detect that.
    """

    def __init__(self, sessions: sessionmaker[Session], send: Send) -> None:
        self._sessions = sessions
        self._send = send

    def notify(self, event_id: str, student_id: UUID, text: str) -> None:
        with self._sessions.begin() as session:
            if session.get(Notification, event_id) is None:
                session.add(Notification(event_id=event_id, student_id=student_id, text=text))
                self._send(student_id, text)


class AbsenceNoticeHandler:
    event_type = "attendance.absence_notice_submitted"
    name = "notifications.absence"

    def __init__(self, service: NotificationService) -> None:
        self._service = service

    def handle(self, event: ReceivedEvent, context: HandlerContext) -> None:
        notice, student = (UUID(event.payload[field]) for field in ("absenceNoticeId", "studentId"))
        self._service.notify(event.event_id, student, f"absence notice {notice} was received")


class GradePublishedHandler:
    event_type = "grades.grade_published"
    name = "notifications.grade"

    def __init__(self, service: NotificationService) -> None:
        self._service = service

    def handle(self, event: ReceivedEvent, context: HandlerContext) -> None:
        grade = event.payload
        self._service.notify(event.event_id, UUID(grade["studentId"]), f"{grade['subject']}: {grade['mark']}")


def register(handlers: Handlers, service: NotificationService) -> None:
    """All handlers of this module."""
    handlers.add(AbsenceNoticeHandler(service))
    handlers.add(GradePublishedHandler(service))
