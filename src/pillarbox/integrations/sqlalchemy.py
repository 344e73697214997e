"""Events that aggregates collect while they change, recorded when the session commits.

    class Order(CollectsEvents, Base):
        def ship(self) -> None:
            self.shipped = True
            self.collect(Event("order.shipped", {"id": self.id}, key=f"order:{self.id}"))

    record_collected(sessionmaker(engine), Outbox())

The events are inserted in the session's transaction, right before its commit and in the order in which they were
collected. An event that was collected in a savepoint which was rolled back is not recorded, and neither is any event of
a session that was rolled back or closed. A session that does not record, and has collected events, refuses to commit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast
from weakref import WeakSet

from pillarbox.core.errors import ConfigurationError
from pillarbox.core.event import Event
from pillarbox.record.outbox import Outbox

try:
    from sqlalchemy import event as sqlalchemy_events
    from sqlalchemy.ext.asyncio import async_sessionmaker
    from sqlalchemy.orm import Session, SessionTransaction, object_session, scoped_session, sessionmaker
except ImportError as missing:  # pragma: no cover - shown by the test of the bare wheel
    raise ImportError('this needs SQLAlchemy: pip install "pillarbox[sqlalchemy]"') from missing

Collected = Event | Callable[[], Event]
"""An event, or a function that creates it right before the commit, when the database has generated all values."""

_RECORDING: WeakSet[Any] = WeakSet()
"""Classes of sessions, and single sessions, that record."""
_PENDING = "pillarbox.collected"
_COMMITTING = "pillarbox.committing"
"""The outbox, in a session that has recorded its events and has not committed yet."""
_BEFORE_ATTACH = "_pillarbox_collected"


class CollectsEvents:
    """A mixin for mapped classes. `collect` notes events; `record_collected` has their sessions record them."""

    def collect(self, *events: Collected) -> None:
        """Note events of this object, to be recorded when its session commits.

        Pass a function for an event that contains values which the database generates, such as a primary key.
        """
        session = object_session(self)
        if session is not None:
            _note(session, events)
        else:
            # SQLAlchemy knows no such attribute, so that it is neither stored nor expired.
            self.__dict__.setdefault(_BEFORE_ATTACH, []).extend(events)


def record_collected(
    sessions: sessionmaker[Any] | scoped_session[Any] | async_sessionmaker[Any] | type[Session] | Session,
    outbox: Outbox,
) -> None:
    """Record the collected events of these sessions with the outbox, right before each commit.

    sessions: a session factory, sync or async, a scoped session as Flask-SQLAlchemy has it, a session class or one
        session. Raises ConfigurationError for anything else, and if the sessions record collected events already.
    """
    target = _target(sessions)
    if _records(target):
        raise ConfigurationError("these sessions record collected events already: call record_collected once for them")
    _RECORDING.add(target)

    def record(session: Session) -> None:
        _before_commit(session, outbox)

    sqlalchemy_events.listen(target, "before_commit", record)


def _target(sessions: Any) -> type[Session] | Session:
    """The class of the sessions, or the one session: an awaited session runs a blocking one inside."""
    if isinstance(sessions, async_sessionmaker):
        inner: type[Session] = sessions.kw.get("sync_session_class", Session)
        if inner is Session:  # the class of all sessions of the process
            inner = type("CollectingSession", (Session,), {})
            sessions.configure(sync_session_class=inner)
        return inner
    # SQLAlchemy's types leave out what its factories are made of.
    factory: Any = cast(Any, sessions).session_factory if isinstance(sessions, scoped_session) else sessions
    if isinstance(factory, sessionmaker):
        own: type[Session] = cast(Any, factory).class_  # each factory has one
        return own
    if isinstance(sessions, Session) or (isinstance(sessions, type) and issubclass(sessions, Session)):
        return sessions
    kind = type(cast(object, sessions)).__name__
    raise ConfigurationError(
        f"record_collected got a {kind}; pass a sessionmaker, an async_sessionmaker, a scoped_session, a Session class "
        "or a Session"
    )


def _records(target: type[Session] | Session) -> bool:
    kinds = target.__mro__ if isinstance(target, type) else (target, *type(target).__mro__)
    return any(one in _RECORDING for one in kinds)


class _CollectedEvent:
    """A collected event, and the transaction or savepoint without which it never happened."""

    __slots__ = ("collected", "transaction")

    def __init__(self, collected: Collected, transaction: SessionTransaction | None) -> None:
        self.collected = collected
        self.transaction = transaction


def _pending(session: Session) -> list[_CollectedEvent]:
    found: list[_CollectedEvent] = session.info.setdefault(_PENDING, [])
    return found


def _note(session: Session, events: tuple[Collected, ...] | list[Collected]) -> None:
    if (outbox := session.info.get(_COMMITTING)) is not None:
        # A listener that runs after ours collects: later would be too late.
        if not all(isinstance(one, Event) for one in events):
            session.flush()
        _record(session, events, outbox)
        return
    transaction = session.get_nested_transaction() or session.get_transaction()
    _pending(session).extend(_CollectedEvent(collected, transaction) for collected in events)


def _attached(session: Session, instance: object) -> None:
    """An object enters a session: so do the events that it has collected before."""
    if isinstance(instance, CollectsEvents) and _BEFORE_ATTACH in instance.__dict__:
        _note(session, instance.__dict__.pop(_BEFORE_ATTACH))


def _refuse_to_lose(session: Session) -> None:
    if session.info.get(_PENDING) and not _records(session):
        raise ConfigurationError(
            "the session has collected events and does not record them, so its commit would lose them: call "
            "record_collected(…, outbox) once with the factory or class of this session"
        )


def _before_commit(session: Session, outbox: Outbox) -> None:
    if (savepoint := session.get_nested_transaction()) is not None:
        for entry in _pending(session):
            if entry.transaction is savepoint:
                entry.transaction = savepoint.parent
        return
    session.flush()  # the database generates its values, and listeners may collect more
    while entries := _pending(session):
        session.info[_PENDING] = []
        _record(session, [entry.collected for entry in entries], outbox)
    session.info[_COMMITTING] = outbox


def _record(session: Session, events: tuple[Collected, ...] | list[Collected], outbox: Outbox) -> None:
    if events:
        outbox.record(session, *(one if isinstance(one, Event) else one() for one in events))


def _ended(session: Session, transaction: SessionTransaction) -> None:
    """What was collected in a transaction and not recorded until its end was rolled back with it."""
    is_outermost = transaction.parent is None
    if is_outermost:
        session.info.pop(_COMMITTING, None)
    if _PENDING not in session.info:
        return
    session.info[_PENDING] = [
        entry
        for entry in _pending(session)
        if entry.transaction is not transaction and not (is_outermost and entry.transaction is None)
    ]


# For every session of the process, because one that does not record must not lose what its objects have collected.
sqlalchemy_events.listen(Session, "after_attach", _attached)
sqlalchemy_events.listen(Session, "after_transaction_end", _ended)
sqlalchemy_events.listen(Session, "before_commit", _refuse_to_lose)
