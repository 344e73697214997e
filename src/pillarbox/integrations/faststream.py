"""FastStream on RabbitMQ: a middleware that handles each event once, and publishers that record in the outbox.

    InboxMiddleware   opens the transaction of the handler, admits the event, calls the handler, commits; FastStream
                      acknowledges after that
    OutboxPublisher   `publish` records an event in the handler's transaction, or in one that you pass

The middleware holds for every subscriber of the broker or router that it is given to.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, cast

from pillarbox.connections.accepted import AsyncRecordable
from pillarbox.core.errors import ConfigurationError, InboxError, NotInTransactionError
from pillarbox.core.event import Event
from pillarbox.inbox.admission import check_consumer
from pillarbox.inbox.inbox import Inbox
from pillarbox.inbox.transactions import Transactions, is_awaited, opened, opener
from pillarbox.record.outbox import Outbox

try:
    from faststream import AckPolicy, BaseMiddleware, Context, ContextRepo, StreamMessage
    from faststream.exceptions import AckMessage
except ImportError as missing:  # pragma: no cover - shown by the test of the bare wheel
    raise ImportError('the integration needs FastStream: pip install "pillarbox[faststream]"') from missing

__all__ = ["HandledEvent", "InboxMiddleware", "InboxTransaction", "OutboxPublisher"]

_log = logging.getLogger("pillarbox.faststream")

_NAME = "inbox_transaction"
_SAFE = (AckPolicy.NACK_ON_ERROR, AckPolicy.REJECT_ON_ERROR)

InboxTransaction: Any = Context(_NAME)
"""Injects the open transaction: `session: Annotated[AsyncSession, InboxTransaction]`."""


@dataclass(frozen=True, slots=True)
class HandledEvent:
    """The event that a handler handles; the cause of the events that it records."""

    event_id: str
    correlation_id: str | None
    trace_id: str | None
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Handling:
    transaction: Any
    event: HandledEvent


_current: ContextVar[_Handling | None] = ContextVar("pillarbox_faststream_handling", default=None)


class InboxMiddleware:
    """A middleware of a broker or router: `RabbitBroker(url, middlewares=[InboxMiddleware("billing", engine)])`.

    consumer: inbox records are stored under this name and the queue's: keep both stable.
    transaction: opens an async transaction for each message: an AsyncEngine or async_sessionmaker of SQLAlchemy, or a
        function that returns an async context manager. It must commit when its block ends without an exception.
    inbox: default: one on the default tables.

    A duplicate is acknowledged without a call of the handler. A message without a message id raises InboxError, and a
    subscriber whose `ack_policy` acknowledges before the commit or after a failure raises ConfigurationError.
    """

    def __init__(self, consumer: str, transaction: Transactions, *, inbox: Inbox | None = None) -> None:
        check_consumer(consumer)
        self._consumer = consumer
        self._open = opener(transaction)
        self._inbox = inbox or Inbox()

    def __call__(self, msg: Any, /, *, context: ContextRepo) -> BaseMiddleware[Any, Any]:
        return _Scope(msg, context=context, middleware=self)

    async def handle(
        self, call_next: Callable[[Any], Awaitable[Any]], message: StreamMessage[Any], context: ContextRepo
    ) -> Any:
        """Call the handler in a transaction that admits the event. Raises AckMessage for a duplicate."""
        subscriber = context.get_local("handler_")
        _check_policy(subscriber)
        event = _event(message)
        queue = getattr(getattr(subscriber, "queue", None), "name", "")
        block = opened(self._open)
        if not is_awaited(block):
            raise ConfigurationError(
                "the transaction of InboxMiddleware is sync and would block the event loop; pass an AsyncEngine, an "
                "async_sessionmaker or a function with @asynccontextmanager"
            )
        consumer = f"{self._consumer}:{queue}" if queue else self._consumer
        async with block as transaction:
            if not await self._inbox.aadmit(transaction, consumer, event.event_id):
                _log.warning("skipped duplicate: consumer=%s event_id=%s", consumer, event.event_id)
                # The result of a handler would be published; there is none.
                raise AckMessage
            token = _current.set(_Handling(transaction, event))
            try:
                with context.scope(_NAME, transaction):
                    return await call_next(message)
            finally:
                _current.reset(token)


class _Scope(BaseMiddleware[Any, Any]):
    """What FastStream creates for one message."""

    def __init__(self, msg: Any, /, *, context: ContextRepo, middleware: InboxMiddleware) -> None:
        super().__init__(msg, context=context)
        self._middleware = middleware

    async def consume_scope(self, call_next: Callable[[Any], Awaitable[Any]], msg: StreamMessage[Any]) -> Any:
        return await self._middleware.handle(call_next, msg, self.context)


class OutboxPublisher:
    """Publishes events of one type through the outbox: `orders = OutboxPublisher("order.placed")`.

    `fields` are those of `Event` that are the same for every event, such as `destination` and `aggregate_type`.
    """

    def __init__(self, event_type: str, *, outbox: Outbox | None = None, **fields: Any) -> None:
        """Raises RecordError for an invalid type or field."""
        Event(event_type, {}, **fields)  # checks them
        self._event_type = event_type
        self._outbox = outbox or Outbox()
        self._fields = fields

    async def publish(self, message: Any, *, connection: AsyncRecordable | None = None, **fields: Any) -> str:
        """Record an event in a transaction; returns its id. The relay sends it after the commit.

        connection: whatever `Outbox.arecord` takes; None: the transaction of the handler, which `InboxMiddleware`
            opened. The event of the handler is recorded as the cause.
        fields: those of `Event`, such as `key`, `headers`, `correlation_id`.

        Raises NotInTransactionError outside such a handler, and what `Outbox.arecord` raises.
        """
        event = Event(self._event_type, message, **{**self._fields, **fields})
        handling = _current.get()
        if handling is not None:
            event = event.caused_by(handling.event)
        if connection is None:
            if handling is None:
                raise NotInTransactionError(
                    f"{self._event_type} has no transaction to be recorded in; pass connection=…, or publish in a "
                    "handler behind InboxMiddleware"
                )
            connection = cast(AsyncRecordable, handling.transaction)
        [event_id] = await self._outbox.arecord(connection, event)
        return event_id


def _check_policy(subscriber: Any) -> None:
    policy = getattr(subscriber, "ack_policy", None)
    if policy not in _SAFE:
        raise ConfigurationError(
            f"ack_policy is {policy}: a failed event would be acknowledged, or every event before its commit; set "
            "ack_policy=AckPolicy.NACK_ON_ERROR (redelivers) or REJECT_ON_ERROR (dead-letters) of the subscriber"
        )


def _event(message: StreamMessage[Any]) -> HandledEvent:
    raw = message.raw_message
    # FastStream makes up an id for a message that has none; no second delivery would have it.
    event_id = getattr(raw, "message_id", None)
    if not event_id:
        raise InboxError("the message has no message_id, by which a duplicate is detected; its producer must set one")
    headers = {name: value for name, value in message.headers.items() if isinstance(value, str)}
    correlation_id = getattr(raw, "correlation_id", None)
    return HandledEvent(str(event_id), correlation_id, headers.get("traceparent"), headers)
