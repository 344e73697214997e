"""Publishes batches: writes all messages at once, then waits for the acknowledgement of each.

JetStream answers each message to the reply subject that it has: the inbox of the batch and the position in it. The
message id is the event id and the subject, so that JetStream stores a message once that is sent again, and both
messages of an event that goes to two subjects of a stream.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

from pillarbox import failpoints
from pillarbox.core.errors import NackedError, PermanentError, RejectedError, UnavailableError
from pillarbox.core.transport import Outgoing, SendResult
from pillarbox.timeouts import StallWatch
from pillarbox.transports.nats.connection import NO_RESPONDERS, UNAVAILABLE_FROM, NatsConnection
from pillarbox.transports.nats.headers import EXPECTED_STREAM, MAX_HEADERS, OWN, encode_header, encode_value, status_of

_PENDING = UnavailableError("the message has no result yet")
_TOO_LARGE, _STORE_FAILED, _OTHER_STREAM, _SEALED = 10054, 10077, 10060, 10109
RESERVE = 4096
"""Bytes that a message leaves free: a consumer adds the reason of a failure and counts when it copies the message."""
_ACCOUNT_FULL = 10002
_BUSY = 429


class NatsPublication(NamedTuple):
    """A message of a batch, with its subject."""

    position: int
    outgoing: Outgoing
    subject: str
    stream: str
    """The stream that must store it; '': any."""
    creates: bool
    """Whether a stream may be created for its subject."""
    is_only_subject: bool
    """Whether its destination sends everything to this subject."""

    def unavailable(self, reason: str) -> UnavailableError:
        """The error of a message whose subject cannot be used now. If its destination has a subject for each of several
        events, the others are available: then it is an error of this message, which is deferred by itself."""
        return UnavailableError(reason) if self.is_only_subject else NackedError(reason)


class NatsBatchResults:
    """The results of a batch: one per message, set once."""

    def __init__(self, size: int) -> None:
        self._results: list[SendResult] = [_PENDING] * size

    def set(self, position: int, result: SendResult) -> None:
        if self._results[position] is _PENDING:
            self._results[position] = result

    def pending(self, publications: Sequence[NatsPublication]) -> list[NatsPublication]:
        results = self._results
        return [publication for publication in publications if results[publication.position] is _PENDING]

    def fail(self, publications: Sequence[NatsPublication], error: SendResult) -> None:
        for publication in publications:
            self.set(publication.position, error)

    def as_list(self) -> list[SendResult]:
        return self._results


class NatsPublishedBatch:
    """Messages on their way over one connection."""

    def __init__(
        self, connection: NatsConnection, results: NatsBatchResults, publications: Sequence[NatsPublication]
    ) -> None:
        self._connection = connection
        self._results = results
        self._by_position: dict[bytes, NatsPublication] = {}
        self._sent = 0
        self._all = publications
        self._done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.unconfirmed: UnavailableError | None = None
        """Why some messages have neither a confirmation nor a refusal, and may be stored or not."""
        self.without_stream = False
        """Whether no stream answered for a subject."""

    async def publish(self, limit: float) -> None:
        """Send, and wait until every message has its result: after `limit` seconds without progress, an error."""
        connection, wire = self._connection, self._connection.wire
        inbox = connection.add_handler(self._on_reply)
        connection.listeners.add(self)
        try:
            wire.write(self._commands(inbox, connection.max_payload - RESERVE))
            if failpoints.armed:
                failpoints.hit("after-send")
            if self._by_position:
                with StallWatch(limit, lambda: (len(self._by_position), wire.unsent), lambda: self._stalled(limit)):
                    await self._done
        finally:
            connection.remove_handler(inbox)
            connection.listeners.discard(self)

    def _commands(self, inbox: str, limit: int) -> bytes:
        """The encoded messages; sets the results of those that cannot be sent."""
        pieces: list[bytes] = []
        for publication in self._all:
            outgoing, subject = publication.outgoing, publication.subject
            try:
                headers = headers_of(outgoing, subject, publication.stream)
            except UnicodeEncodeError:
                self._results.set(
                    publication.position,
                    PermanentError(f"event {outgoing.message.event_id} has a header that is not valid Unicode"),
                )
                continue
            size = len(headers) + len(outgoing.body)
            if size > limit:
                self._results.set(
                    publication.position,
                    PermanentError(
                        f"event {outgoing.message.event_id} has {size} bytes with its headers, over the limit of "
                        f"{limit}: raise max_payload of the server, which is {RESERVE} more, or record less"
                    ),
                )
                continue
            if len(headers) > MAX_HEADERS - RESERVE:
                self._results.set(
                    publication.position,
                    PermanentError(
                        f"event {outgoing.message.event_id} has {len(headers)} bytes of headers, over the limit of "
                        f"{MAX_HEADERS - RESERVE}, which is that of JetStream less {RESERVE}; record less"
                    ),
                )
                continue
            position = b"%d" % publication.position
            self._by_position[position] = publication
            start = f"HPUB {subject} {inbox}.{publication.position} {len(headers)} {size}\r\n".encode()
            pieces += (start, headers, outgoing.body, b"\r\n")
        self._sent = len(self._by_position)
        return b"".join(pieces)

    def _on_reply(self, position: bytes, data: bytes, headers: bytes | None) -> None:
        if (publication := self._by_position.get(position)) is None:
            return
        if failpoints.armed:
            failpoints.hit("before-confirm")
        if data.startswith(b'{"stream":') and b'"seq":' in data and b'"error"' not in data:
            result = None
            self._connection.failing_since = None
        else:
            result = self._refusal(publication, data, headers)
        self._settle(position, publication, result)

    def _refusal(self, publication: NatsPublication, data: bytes, headers: bytes | None) -> SendResult:
        if not data and status_of(headers) == NO_RESPONDERS:
            self.without_stream = True
            self._connection.failed()
            return publication.unavailable(
                f"no stream answers for subject {publication.subject!r} at NATS {self._connection.server}: create one, "
                "or wait until it has a leader"
            )
        answer = _members(data)
        if "stream" in answer and "seq" in answer and "error" not in answer:
            return None
        error = answer.get("error")
        if isinstance(error, dict) and isinstance((known := cast("dict[str, Any]", error)).get("code"), int):
            return refusal_of(publication, known)
        return publication.unavailable(
            f"something else than JetStream answers for subject {publication.subject!r}: keep responders off it"
        )

    def _settle(self, position: bytes, publication: NatsPublication, result: SendResult) -> None:
        del self._by_position[position]
        self._results.set(publication.position, result)
        self._finish()

    def _finish(self) -> None:
        if not self._by_position and not self._done.done():
            self._done.set_result(None)

    def on_lost(self, reason: UnavailableError) -> None:
        """Fail the messages that have no result."""
        self.unconfirmed = reason
        for publication in self._by_position.values():
            self._results.set(publication.position, reason)
        self._by_position.clear()
        self._finish()

    def _stalled(self, limit: float) -> None:
        self._connection.unresponsive = True
        self._connection.failed()
        subjects = sorted({publication.subject for publication in self._by_position.values()})
        reason = (
            f"NATS at {self._connection.server} did not confirm messages to {', '.join(subjects[:3])} within "
            f"{limit:g} s: their stream may have no leader, or no_ack set"
        )
        if len(self._by_position) < self._sent:  # it confirmed others
            for publication in self._by_position.values():
                self._results.set(publication.position, publication.unavailable(reason))
        self.on_lost(UnavailableError(reason))

    def on_refused(self, text: str) -> None:
        """Fail the messages to a subject that this user may not send to; the text has it in lower case."""
        for position, publication in list(self._by_position.items()):
            if f'"{publication.subject.lower()}"' in text:
                reason = f"NATS at {self._connection.server} refuses: {text}; grant the permission"
                self._settle(position, publication, publication.unavailable(reason))


def headers_of(outgoing: Outgoing, subject: str, stream: str) -> bytes:
    """The headers of a message. Raises UnicodeEncodeError for a lone surrogate."""
    event_id = encode_value(outgoing.message.event_id)
    lines = [
        f"NATS/1.0\r\nNats-Msg-Id: {event_id}@{subject if subject.isascii() else encode_value(subject)}\r\n"
        f"eventId: {event_id}\r\ncontent-type: {encode_value(outgoing.content_type)}\r\n"
    ]
    if stream:
        lines.append(f"{EXPECTED_STREAM}: {stream}\r\n")
    for name, value in outgoing.headers.items():
        if name.lower() not in OWN:
            lines.append(encode_header(name, value))
    lines.append("\r\n")
    return "".join(lines).encode("ascii")


def _members(data: bytes) -> dict[str, Any]:
    """The members of a JSON object; none of anything else."""
    try:
        decoded = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", decoded) if isinstance(decoded, dict) else {}


def refusal_of(publication: NatsPublication, error: dict[str, Any]) -> SendResult:
    """The error of a message that JetStream refuses."""
    status, event_id = error["code"], publication.outgoing.message.event_id
    code = found if isinstance(found := error.get("err_code"), int) else 0
    text = f"{error.get('description', 'unknown error')} ({code})"
    subject = publication.subject
    if code == _TOO_LARGE:
        return PermanentError(f"JetStream refuses event {event_id} for subject {subject!r}: {text}")
    if code == _STORE_FAILED and "maximum" in text:
        return NackedError(f"the stream of subject {subject!r} is full: {text}; consume it, or raise its limits")
    if code == _ACCOUNT_FULL:
        return NackedError(f"the account is full: {text}; consume its streams, or raise its limits")
    if status == _BUSY:
        return NackedError(f"the stream of subject {subject!r} is busy: {text}")
    if code == _OTHER_STREAM:
        return publication.unavailable(
            f"another stream than {publication.stream!r} has subject {subject!r}: {text}; correct the destination"
        )
    if status >= UNAVAILABLE_FROM or code in (_STORE_FAILED, _SEALED):
        return publication.unavailable(f"JetStream does not store messages to subject {subject!r} now: {text}")
    return RejectedError(f"JetStream refuses event {event_id} for subject {subject!r}: {text}")
