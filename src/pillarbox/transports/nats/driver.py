"""nats-py's client, with what nats-py does not offer.

`NatsWire` connects once and never reconnects, insists on TLS where the URL asks for it, writes encoded commands, hands
received messages to a function without a task in between, and can be cut at once. nats-py does the rest: INFO and
CONNECT, credentials, the TLS handshake, parsing, and pings on an idle connection.

The only module that touches nats-py's internals. If a release of nats-py renames something in `_INTERNALS`, opening a
transport or a source raises ConfigurationError.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Any

try:
    from nats.aio.client import Client
    from nats.aio.client import __version__ as _nats_version
    from nats.errors import Error as NatsError
except ImportError as missing:  # pragma: no cover - shown by the test of the bare wheel
    raise ImportError('NATS needs nats-py: pip install "pillarbox[nats]"') from missing

from pillarbox.core.errors import ConfigurationError

__all__ = ["MessageHandler", "NatsError", "NatsWire", "check_driver", "publish_command", "reason_of"]

MessageHandler = Callable[[bytes, bytes, bytes, bytes | None], None]
"""Receives subject, reply subject, payload and the block of headers of a message. Must not raise."""

_INTERNALS = ("_process_msg", "_process_op_err", "_process_err", "_process_info", "_read_loop", "_ping_interval")
_PING_INTERVAL = 20
"""Seconds between the pings on an idle connection; after two without a reply it is lost."""
_CLOSE_TIMEOUT = 2.0
"""Seconds to wait for the socket to be closed in order before it is cut."""


def check_driver() -> None:
    """Raise ConfigurationError if this release of nats-py lacks something that `NatsWire` overrides."""
    if absent := [name for name in _INTERNALS if not hasattr(Client, name)]:
        raise ConfigurationError(
            f"nats-py {_nats_version} is not supported: it lacks {', '.join(absent)}; install nats-py 2.16"
        )


class NatsWire(Client):
    """One connection to one server, opened once and ended once.

    `ended` is called when the server or the network ends it, `refused` with the text of the server when it refuses a
    command but keeps the connection.
    """

    def __init__(self, *, ended: Callable[[str], None], refused: Callable[[str], None], secure: bool) -> None:
        super().__init__()
        self._ended = ended
        self._refused = refused
        self._secure = secure
        self._handlers: dict[int, MessageHandler] = {}
        self._subscriptions = 0
        self._first_error: Exception | None = None

    async def open(
        self,
        server: str,
        *,
        limit: float,
        user: str | None,
        password: str | None,
        token: str | None,
        tls: ssl.SSLContext | None,
    ) -> None:
        """Raises NatsError, OSError, TimeoutError; the caller then calls `cut`."""
        cancelled = _cancellations()
        try:
            await self.connect(
                servers=[server],
                error_cb=self._remember,
                name="pillarbox",
                allow_reconnect=False,
                max_reconnect_attempts=1,
                reconnect_time_wait=0,
                connect_timeout=max(1, round(limit)),
                ping_interval=_PING_INTERVAL,
                user=user,
                password=password,
                token=token,
                tls=tls,
            )
        except NatsError:
            if self._first_error is not None:
                raise self._first_error from None
            raise
        finally:
            if _cancellations() > cancelled:
                raise asyncio.CancelledError  # `wait_for` of Python 3.11, which nats-py uses, may have swallowed it
        reading: asyncio.Task[Any] | None = getattr(self, "_reading_task", None)
        if reading is not None:
            # It also ends when it fails over what the server sends, which nats-py only logs.
            reading.add_done_callback(lambda _: self._ended("nats-py stopped reading"))

    @property
    def info(self) -> dict[str, Any]:
        """What the server says about itself."""
        return self._server_info

    @property
    def unsent(self) -> int:
        """Bytes that were written and have not left yet."""
        writer = self._writer()
        return 0 if writer is None else writer.transport.get_write_buffer_size()

    def write(self, commands: bytes) -> None:
        """Send encoded commands. On a lost connection they are dropped."""
        if (writer := self._writer()) is not None and not writer.is_closing():
            writer.write(commands)

    def receive(self, subject: str, handler: MessageHandler) -> int:
        """Subscribe; returns the number of the subscription."""
        self._subscriptions += 1
        number = self._subscriptions
        self._handlers[number] = handler
        self.write(f"SUB {subject} {number}\r\n".encode())
        return number

    def ignore(self, number: int) -> None:
        """End a subscription. Messages that are on their way still arrive."""
        self.write(b"UNSUB %d\r\n" % number)

    def ping(self, ponged: asyncio.Future[Any]) -> None:
        """Complete the future when the server has answered all commands before this one."""
        pongs: list[asyncio.Future[Any]] = getattr(self, "_pongs")  # noqa: B009 - partially untyped in nats-py
        pongs.append(ponged)
        self.write(b"PING\r\n")

    def cut(self) -> None:
        """Close the socket at once, and end nats-py's tasks."""
        self._end_tasks()
        if (writer := self._writer()) is not None:
            writer.transport.abort()

    async def finish(self) -> None:
        """Send what was written, and close the socket."""
        self._end_tasks()
        writer = self._writer()
        if writer is None:
            return
        writer.close()
        try:
            with suppress(OSError):
                async with asyncio.timeout(_CLOSE_TIMEOUT):
                    await writer.wait_closed()
        except TimeoutError:
            writer.transport.abort()
        except asyncio.CancelledError:
            writer.transport.abort()
            raise

    def _writer(self) -> asyncio.StreamWriter | None:
        return getattr(self._transport, "_io_writer", None)

    def _end_tasks(self) -> None:
        self._status = Client.CLOSED
        for name in ("_reading_task", "_ping_interval_task", "_flusher_task"):
            task: asyncio.Task[Any] | None = getattr(self, name)
            if task is not None:
                task.cancel()

    async def _remember(self, error: Exception) -> None:
        self._first_error = self._first_error or error

    async def _process_msg(self, sid: int, subject: bytes, reply: bytes, data: bytes, headers: Any) -> None:
        if (handler := self._handlers.get(sid)) is not None:
            handler(subject, reply, data, headers)

    async def _process_info(self, info: dict[str, Any], initial_connection: bool = False) -> None:
        if self._secure and initial_connection:
            if not (info.get("tls_required") or info.get("tls_available")):
                # nats-py would send the password unencrypted.
                raise NatsError("the server offers no TLS, and the URL begins with tls://")
            info["tls_required"] = True

    async def _process_err(self, err_msg: str) -> None:
        text = err_msg.strip("'")
        if "permissions violation" in text:
            self._refused(text)
        else:
            self._ended(text)

    async def _process_op_err(self, e: Exception) -> None:
        self._ended(str(e) or type(e).__name__)


def _cancellations() -> int:
    """How often the current task was cancelled."""
    task = asyncio.current_task()
    return 0 if task is None else task.cancelling()


def publish_command(subject: str, reply: str, payload: bytes, headers: bytes | None = None) -> bytes:
    """An encoded command that publishes one message."""
    if headers is None:
        return b"PUB %b %d\r\n%b\r\n" % (f"{subject} {reply}".encode(), len(payload), payload)
    sizes = (len(headers), len(headers) + len(payload))
    return b"HPUB %b %d %d\r\n%b%b\r\n" % (f"{subject} {reply}".encode(), *sizes, headers, payload)


def reason_of(error: Exception) -> str:
    """The text of an error without nats-py's prefix; credentials are never part of it."""
    return str(error).removeprefix("nats: ").strip("'\" ") or type(error).__name__
