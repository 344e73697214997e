"""Notifications: handlers, found by the type of the event, tell the parents. They know events, and no other module."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from sqlalchemy.orm import Mapped, Session, mapped_column, sessionmaker

from examples.school.tables import Base
from pillarbox import Handlers
from pillarbox.transports.handlers import HandlerContext, ReceivedEvent

Send = Callable[[UUID, str], None]
"""To whom, and what. May raise: then it is tried again."""


class Notification(Base):
    """What parents were told; the event's id tells a repeat."""

    __tablename__ = "notification"

    event_id: Mapped[str] = mapped_column(primary_key=True)
    student_id: Mapped[UUID]
    text: Mapped[str]


class NotificationService:
    """Tells parents once per event, however often a handler is called with it.

    Only a crash between sending and committing tells them twice: a gap that nobody but the receiver can close.
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
