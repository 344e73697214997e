"""A transport that writes one line of JSON per event to a stream, by default to standard output.

An event is accepted when the line is flushed, whether or not it is read: use it for development and pipes. One thread
writes the lines in order, so a reader that blocks does not block the relay.
"""

from __future__ import annotations

import asyncio
import json
import sys
from base64 import b64encode
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TextIO

from pillarbox.core.clock import timestamp
from pillarbox.core.errors import UnavailableError
from pillarbox.core.payload import is_json, parse_json
from pillarbox.core.transport import Address, Outgoing, Pace, SendResult, Transport
from pillarbox.plugins import TransportDiagnosis, TransportPlugin

_CLOSED = "stdout: it is closed; create a new one"


@dataclass(frozen=True, slots=True, kw_only=True)
class StdoutAddress(Address):
    """The name printed as destination; '': the name of the destination."""

    name: str = ""


class StdoutTransport:
    """See `pillarbox.core.transport.Transport`. Closing it does not close the stream."""

    pace = Pace(batch_size=100, concurrency=4)
    address_type = StdoutAddress

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream
        self._writer: ThreadPoolExecutor | None = None
        self._writing: list[asyncio.Future[None]] = []
        self._closed = False

    @staticmethod
    def to(name: str = "") -> StdoutAddress:
        """The address that prints this name as destination."""
        return StdoutAddress(name=name)

    def defaults(self, event_type: str) -> Mapping[str, Address]:
        """Every event goes to the stream."""
        return {"stdout": self.to()}

    async def send(self, batch: Sequence[Outgoing]) -> list[SendResult]:
        await self.ping()
        result = await self._write(list(batch)) if batch else None
        return [result] * len(batch)

    async def ping(self) -> None:
        if self._closed:
            raise UnavailableError(_CLOSED)
        if self._target().closed:
            raise UnavailableError("stdout: its stream is closed; pass an open one")

    async def aclose(self) -> None:
        self._closed = True
        for future in self._writing:
            future.cancel()
        if self._writer is not None:
            self._writer.shutdown(wait=False)

    def _target(self) -> TextIO:
        # Read on each call, because the application may redirect standard output.
        return self._stream or sys.stdout

    async def _write(self, batch: list[Outgoing]) -> UnavailableError | None:
        if self._writer is None:
            self._writer = ThreadPoolExecutor(1, thread_name_prefix="pillarbox-stdout")
        future = asyncio.get_running_loop().run_in_executor(self._writer, _write_lines, self._target(), batch)
        self._writing.append(future)
        try:
            await future
        except (OSError, ValueError) as error:  # a closed stream raises ValueError
            return UnavailableError(f"stdout: {type(error).__name__}: {error}; check that its reader still runs")
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if not self._closed or (task is not None and task.cancelling()):
                raise
            return UnavailableError(_CLOSED)
        finally:
            self._writing.remove(future)
        return None


def _write_lines(stream: TextIO, batch: list[Outgoing]) -> None:
    ascii_only = (stream.encoding or "utf-8").lower().replace("-", "") != "utf8"
    stream.write("".join(f"{_escaped(line(one), ascii_only=ascii_only)}\n" for one in batch))
    stream.flush()


def line(one: Outgoing) -> str:
    """The event as one JSON object; a JSON body is `payload`, unchanged, any other is `text` or `base64`."""
    message = one.message
    name = one.address.name if isinstance(one.address, StdoutAddress) else ""
    head = {
        "event_id": message.event_id,
        "event_type": message.event_type,
        "destination": name or message.destination,
        "aggregate_type": message.aggregate_type,
        "aggregate_id": message.aggregate_id,
        "key": message.key,
        "occurred_at": timestamp(message.occurred_at),
        "attempt": one.attempt,
        "headers": dict(one.headers),
        "content_type": one.content_type,
    }
    return f"{json.dumps(head, ensure_ascii=False)[:-1]}, {_body(one.body, one.content_type)}}}"


def _body(body: bytes, content_type: str) -> str:
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return f'"base64": "{b64encode(body).decode()}"'
    if is_json(content_type) and _parses(text):
        # JSON has line ends only as whitespace between values, never inside strings.
        return f'"payload": {text.translate(_SPACES)}'
    return f'"text": {json.dumps(text, ensure_ascii=False)}'


_SPACES = {ord(c): " " for c in "\t\r\n"}


def _parses(text: str) -> bool:
    try:
        parse_json(text)
    except ValueError:
        return False
    return True


def _escaped(text: str, *, ascii_only: bool) -> str:
    """Equivalent JSON without control characters of terminals and characters that the stream cannot encode."""
    if text.isprintable() and (text.isascii() or not ascii_only):
        return text
    return "".join(
        c if c.isprintable() and (c.isascii() or not ascii_only) else json.dumps(c)[1:-1]  # whole pairs of surrogates
        for c in text
    )


class StdoutPlugin(TransportPlugin):
    """`stdout://`."""

    kind = "stdout"
    default_routing = "each event to standard output"

    def open(self, url: str, options: Mapping[str, Any]) -> Transport:
        return StdoutTransport()

    def address(self, destination: str, options: Mapping[str, Any]) -> Address:
        return StdoutAddress()

    def diagnosis(
        self, url: str, options: Mapping[str, Any], addresses: Mapping[str, Address]
    ) -> TransportDiagnosis | None:
        return None
