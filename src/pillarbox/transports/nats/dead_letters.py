"""The dead letters of consumers on NATS: their number, their messages, and moving these back.

Each group has its dead letters in a stream of its own. A queue is named by that stream (`ORDERS_billing_dlq`), or, for
all groups of a subject, as on other brokers: `order.placed.dlq`. Nothing is consumed: messages are read where they are
and deleted after JetStream has stored their copy, which has the same message id however often it is made.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from pillarbox.admin.broker_dead_letters import BrokerDeadLetter, dead_letter_queue, legible
from pillarbox.cloudevents import id_and_type
from pillarbox.core.clock import Duration, parse_timestamp
from pillarbox.core.errors import NackedError, RejectedError, UnavailableError
from pillarbox.core.outcome import sanitize_error
from pillarbox.settings.tls import Tls
from pillarbox.transports.nats.connection import NO_RESPONDERS, NatsConnection, NatsConnector
from pillarbox.transports.nats.headers import LAST_FAILED_AT, REASON, ApiError, PulledMessage, copied, incoming_of
from pillarbox.transports.nats.plugin import NatsEndpoint, NatsOptions, at_least_one
from pillarbox.transports.nats.topology import subject_fault

_SUFFIX = dead_letter_queue("")
_NO_MESSAGE = (10037, 10043)


class NatsDeadLetters:
    """See `pillarbox.admin.broker_dead_letters.BrokerDeadLetters`. Connects on first use, and creates nothing.

    Raises ConfigurationError.
    """

    def __init__(
        self,
        url: str,
        *,
        reply_timeout: Duration = "10s",
        connect_timeout: Duration = NatsOptions.connect_timeout,
        tls: Tls = None,
    ) -> None:
        self._endpoint = NatsEndpoint.parse(url, tls)
        self._connector = NatsConnector(
            self._endpoint, connect_timeout=connect_timeout, reply_timeout=reply_timeout, what="connection"
        )

    def __repr__(self) -> str:
        return f"<NatsDeadLetters at {self._endpoint}>"

    async def depth(self, queue: str) -> int | None:
        streams = await self._streams(queue)
        return sum(int(config["state"]["messages"]) for config in streams.values()) if streams else None

    @asynccontextmanager
    async def receive(
        self, queue: str, *, limit: int, prefetch: int
    ) -> AsyncIterator[AsyncIterator[NatsReceivedDeadLetter]]:
        yield self._received(queue, limit, at_least_one("prefetch", prefetch))

    async def aclose(self) -> None:
        await self._connector.aclose()

    async def _received(self, queue: str, limit: int, prefetch: int) -> AsyncIterator[NatsReceivedDeadLetter]:
        connection = await self._connector.ready()
        staying = 0
        for name, config in (await self._streams(queue)).items():
            sequence = int(config["state"]["first_seq"])
            while limit > 0 and staying < prefetch:
                message = await _next_message(connection, name, config["subjects"][0], sequence)
                if message is None:
                    break
                yield (received := NatsReceivedDeadLetter(message, queue, connection))
                staying += received.stays
                sequence, limit = message.sequence + 1, limit - 1

    async def _streams(self, queue: str) -> dict[str, dict[str, Any]]:
        """The streams of a queue with their configuration."""
        catalog = (await self._connector.ready()).streams
        names = [queue]
        if queue.endswith(_SUFFIX):
            subject = queue.removesuffix(_SUFFIX)
            work = [] if subject_fault(subject) else await catalog.names(subject)
            names = [name for one in work for name in await catalog.names(f"pillarbox.{one}.*.dead")]
        elif subject_fault(queue) or "." in queue:
            return {}
        found = {name: await catalog.read(name) for name in names}
        return {name: config for name, config in found.items() if config is not None}


async def _next_message(connection: NatsConnection, stream: str, subject: str, sequence: int) -> PulledMessage | None:
    """The first message from a sequence on; None: there is none. Raises RejectedError, UnavailableError."""
    try:
        answer = await connection.request(f"STREAM.MSG.GET.{stream}", {"seq": sequence, "next_by_subj": subject})
    except ApiError as error:
        if error.code in _NO_MESSAGE:
            return None
        raise RejectedError(f"stream {stream!r} at {connection.server} cannot be read: {error}") from error
    found: dict[str, Any] = answer["message"]
    headers = found.get("hdrs")
    return PulledMessage(
        kind="work",
        subject=found["subject"],
        reply="",
        body=b64decode(found.get("data", "")),
        block=None if headers is None else b64decode(headers),
        stream=stream,
        sequence=int(found["seq"]),
        stored_at=found["time"],
        delivered=0,
    )


class NatsReceivedDeadLetter:
    """See `pillarbox.admin.broker_dead_letters.ReceivedDeadLetter`."""

    def __init__(self, message: PulledMessage, queue: str, connection: NatsConnection) -> None:
        self._message = message
        self._connection = connection
        self._headers = message.sent_headers()
        self.dead_letter = _dead_letter(message, queue)
        self.stays = True

    async def move(self, queue: str) -> None:
        if fault := subject_fault(queue):
            raise RejectedError(f"there is no subject {queue!r}: {fault}")
        message, connection = self._message, self._connection
        copy = copied(message, self._headers, {}, connection.max_payload)
        status, answer = await connection.ask(queue, copy.body, copy.headers)
        if status == NO_RESPONDERS:
            raise RejectedError(f"no stream has subject {queue!r}")
        if b'"error"' in answer or b'"seq":' not in answer:
            text = sanitize_error(answer[:200].decode("utf-8", "replace"))
            raise NackedError(f"the stream of subject {queue!r} refuses the message: {text}")
        try:
            await connection.request(f"STREAM.MSG.DELETE.{message.stream}", {"seq": message.sequence, "no_erase": True})
        except ApiError as error:
            if error.code not in _NO_MESSAGE:
                raise UnavailableError(
                    f"the dead letter was copied but could not be removed from {message.stream!r}: {error}"
                ) from error
        self.stays = False


def _dead_letter(message: PulledMessage, queue: str) -> BrokerDeadLetter:
    """A dead letter from its headers. Raises nothing, whatever a producer wrote."""
    incoming = incoming_of(message.sent_headers(), message.body, is_copy=True)
    event_id, event_type = id_and_type(incoming)
    words, kind = message.subject.rpartition(".")[::2]
    return BrokerDeadLetter(
        queue=queue,
        event_id=legible(event_id),
        event_type=legible(event_type),
        reason=legible(incoming.headers.get(REASON)),
        attempts=incoming.attempts,
        dead_lettered_at=parse_timestamp(incoming.headers.get(LAST_FAILED_AT)),
        original_queue=f"{words}.ready" if kind == "dead" else None,
        delivery_count=0,
        content_type=legible(incoming.content_type),
        size=len(message.body),
        body=message.body,
    )
