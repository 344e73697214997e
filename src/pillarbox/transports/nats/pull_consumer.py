"""Durable pull consumers: created, and their messages requested.

Messages are requested, so that a consumer receives no more than it has room for. One request of a consumer is under way
at a time. The server ends it with a status when it expires; if even that is lost, the request counts as ended a little
later, and the next one is sent. If the server ends it for another reason, as when the consumer moves to another server,
the next one is sent after a pause.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from pillarbox.core.clock import system_rng
from pillarbox.core.errors import ConfigurationError, UnavailableError
from pillarbox.core.retry import Backoff
from pillarbox.transports.nats.connection import NO_RESPONDERS, UNAVAILABLE_FROM, NatsConnection
from pillarbox.transports.nats.driver import publish_command
from pillarbox.transports.nats.headers import ApiError, Kind, PulledMessage, pulled, status_of
from pillarbox.transports.nats.topology import CONSUMER_NOT_FOUND

_MARGIN = 2.0
"""Seconds after which a request that did not end counts as lost."""
_HEARTBEAT, _BAD_REQUEST, _EXPIRED, _ENDED = 100, 400, 408, 409
_FINAL = ("Deleted", "MaxRequest", "push based")
"""Words of a status 409 with which the next request would end, too."""
_PASSING = (404, 429)
"""Statuses of a refusal that may pass: the stream was deleted in between, or there are too many requests."""
MAX_PENDING, UNLIMITED = 100_000, -1
"""Unacknowledged messages of all consumers of a group, and of retries that wait: each of these is unacknowledged."""
_SECOND = 1_000_000_000


async def ensure_consumer(
    connection: NatsConnection,
    stream: str,
    name: str,
    *,
    subject: str,
    ack_wait: float,
    max_pending: int,
    create: bool,
) -> float:
    """Create a durable pull consumer, unless it exists; returns its ack wait in seconds. Raises UnavailableError, and
    ConfigurationError if one exists that cannot be used, or if only other settings let it be created."""
    label = f"consumer {name!r} of stream {stream!r}"
    try:
        found = await connection.request(f"CONSUMER.INFO.{stream}.{name}")
    except ApiError as error:
        if error.code != CONSUMER_NOT_FOUND:
            raise UnavailableError(f"{label} cannot be read: {error}") from error
        if not create:
            raise UnavailableError(f"{label} does not exist; create it, or set declare = true") from error
    else:
        return _usable(label, found["config"], subject)
    config = {
        "durable_name": name,
        "deliver_policy": "all",
        "ack_policy": "explicit",
        "replay_policy": "instant",
        "filter_subject": subject,
        "ack_wait": round(ack_wait * _SECOND),
        "max_deliver": -1,
        "max_ack_pending": max_pending,
    }
    try:
        await connection.request(f"CONSUMER.DURABLE.CREATE.{stream}.{name}", {"stream_name": stream, "config": config})
    except ApiError as error:
        raise not_created(label, subject, error) from error
    return ack_wait


def not_created(label: str, subject: str, error: ApiError) -> ConfigurationError | UnavailableError:
    """What to raise for a consumer that cannot be created: only some errors need other settings."""
    text = f"{label} cannot be created for subject {subject!r}: {error}"
    if error.status in _PASSING or error.status >= UNAVAILABLE_FROM:
        return UnavailableError(text)
    return ConfigurationError(f"{text}; a stream with the retention workqueue allows one consumer of a subject")


def _usable(label: str, config: dict[str, Any], subject: str) -> float:
    if config.get("deliver_subject") or config.get("ack_policy") != "explicit":
        raise ConfigurationError(
            f"{label} exists and is not a pull consumer with explicit acks; use another group, or delete it"
        )
    if (filtered := config.get("filter_subject", "")) not in (subject, ""):
        raise ConfigurationError(
            f"{label} exists and consumes {filtered!r} instead of {subject!r}; use another group, or delete it"
        )
    if config.get("max_deliver", -1) > 0:
        raise ConfigurationError(
            f"{label} exists with max_deliver {config['max_deliver']}: NATS would silently stop delivering a message; "
            "set it to -1 (nats consumer edit), Pillarbox quarantines and dead-letters by itself"
        )
    return float(config.get("ack_wait", 30 * _SECOND)) / _SECOND


class PullConsumer:
    """A durable consumer over one connection. `on_message` receives its messages; `on_idle` is called when a request
    has ended, `on_failed` when the consumer cannot be used any more."""

    def __init__(
        self,
        connection: NatsConnection,
        stream: str,
        name: str,
        kind: Kind,
        *,
        expires: float,
        on_message: Callable[[PulledMessage], None],
        on_idle: Callable[[], None],
        on_failed: Callable[[UnavailableError], None],
    ) -> None:
        self._connection = connection
        self._kind: Kind = kind
        self._name = f"consumer {name!r} of stream {stream!r}"
        self._info = f"CONSUMER.INFO.{stream}.{name}"
        self._subject = f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{name}"
        self._inbox = connection.new_inbox()
        self._requests = 0
        self._expires = expires
        self._timer: asyncio.TimerHandle | None = None
        self._pauses = Backoff(system_rng())
        self._on_message, self._on_idle, self._on_failed = on_message, on_idle, on_failed
        self.asked = 0
        """Messages that are requested and have not arrived."""
        self._subscription = connection.receive(f"{self._inbox}.*", self._on_received)

    def pull(self, count: int) -> None:
        """Request messages, unless a request is under way."""
        if count < 1 or self.asked or self._connection.lost is not None:
            return
        self._requests += 1
        self.asked = count
        payload = json.dumps({"batch": count, "expires": round(self._expires * _SECOND)}).encode()
        self._connection.wire.write(publish_command(self._subject, f"{self._inbox}.{self._requests}", payload))
        self._stop_timer()
        self._timer = asyncio.get_running_loop().call_later(self._expires + _MARGIN, self._ended)

    def stop(self) -> None:
        """Withdraw the request: the server delivers nothing to it that is released afterwards."""
        self._stop_timer()
        self._connection.ignore(self._subscription)

    async def forget_requests(self) -> None:
        """After `stop`, have the server drop the request. Raises UnavailableError.

        A server of NATS 2.9 that finds a withdrawn request when a message is released delivers another message twice
        and this one only after its ack wait. It looks through the requests when it is asked about the consumer.
        """
        with suppress(ApiError):
            await self._connection.request(self._info)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _on_received(self, subject: bytes, reply: bytes, body: bytes, block: bytes | None) -> None:
        status = status_of(block)
        if not status or reply.startswith(b"$JS.ACK."):
            if (message := pulled(self._kind, subject, reply, body, block)) is not None:
                self.asked = max(0, self.asked - 1)
                self._pauses.reset()
                self._on_message(message)
            return
        text = (block or b"").partition(b"\r\n")[0].decode("utf-8", "replace").removeprefix("NATS/1.0 ")
        if status in (NO_RESPONDERS, _BAD_REQUEST) or (status == _ENDED and any(word in text for word in _FINAL)):
            self.asked = 0
            hint = "; raise this limit, or lower prefetch or ack_wait of the source" if "MaxRequest" in text else ""
            where = f"{self._name} at NATS {self._connection.server}"
            self._on_failed(UnavailableError(f"{where} sends no messages: {text}{hint}"))
        elif status == _HEARTBEAT or not subject.endswith(b".%d" % self._requests):
            return
        elif status == _EXPIRED:
            self._pauses.reset()
            self._ended()
        else:
            self._stop_timer()
            self._timer = asyncio.get_running_loop().call_later(self._pauses.next(), self._ended)

    def _ended(self) -> None:
        self.asked = 0
        self._stop_timer()
        self._on_idle()
