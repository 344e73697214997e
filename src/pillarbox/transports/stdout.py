"""A transport that writes one line of JSON per event to a stream, standard output by default.

A line is flushed before it is called accepted; what becomes of it then is its reader's business, so this is for
development and for pipes. Lines are written by one thread, in order: a reader that does not read holds up nobody else.
"""

from __future__ import annotations

import asyncio
import json
import sys
from base64 import b64encode
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TextIO

from pillarbox.core.clock import timestamp
from pillarbox.core.errors import UnavailableError
from pillarbox.core.text import is_json, parse_json
from pillarbox.core.transport import Address, Outgoing, Pace, Result

_CLOSED = "stdout: it is closed; make a new one"


@dataclass(frozen=True, slots=True, kw_only=True)
class StdoutAddress(Address):
    """A name that is printed with each line; '' prints the destination's."""

    name: str = ""


class StdoutTransport:
    """See `pillarbox.core.transport.Transport`. The stream stays open when this is closed: it is its owner's."""

    pace = Pace(batch_size=100, concurrency=4)
    address_type = StdoutAddress

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream
        self._writer: ThreadPoolExecutor | None = None
        self._writing: list[asyncio.Future[None]] = []
        self._closed = False

    @staticmethod
    def to(name: str = "") -> StdoutAddress:
        """The address that prints this name."""
        return StdoutAddress(name=name)

    def defaults(self, event_type: str) -> Mapping[str, Address]:
        """Every event is shown."""
        return {"stdout": self.to()}

    async def send(self, batch: Sequence[Outgoing]) -> list[Result]:
        await self.ping()
        answer = await self._written(list(batch)) if batch else None
        return [answer] * len(batch)

    async def ping(self) -> None:
        if self._closed:
            raise UnavailableError(_CLOSED)
        if self._target().closed:
            raise UnavailableError("stdout: its stream is closed; give it an open one")

    async def aclose(self) -> None:
        self._closed = True
        for future in self._writing:
            future.cancel()
        if self._writer is not None:
            self._writer.shutdown(wait=False)

    def _target(self) -> TextIO:
        # Looked up every time: whoever redirects standard output means this, too.
        return self._stream or sys.stdout

    async def _written(self, batch: list[Outgoing]) -> UnavailableError | None:
        if self._writer is None:
            self._writer = ThreadPoolExecutor(1, thread_name_prefix="pillarbox-stdout")
        future = asyncio.get_running_loop().run_in_executor(self._writer, _write, self._target(), batch)
        self._writing.append(future)
        try:
            await future
        except (OSError, ValueError) as error:  # a closed stream is a ValueError
            return UnavailableError(f"stdout: {type(error).__name__}: {error}; is its reader gone?")
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if not self._closed or (task is not None and task.cancelling()):
                raise
            return UnavailableError(_CLOSED)
        finally:
            self._writing.remove(future)
        return None


def _write(stream: TextIO, batch: list[Outgoing]) -> None:
    ascii_only = (stream.encoding or "utf-8").lower().replace("-", "") != "utf8"
    stream.write("".join(f"{_escaped(line(one), ascii_only=ascii_only)}\n" for one in batch))
    stream.flush()


def line(one: Outgoing) -> str:
    """The event as one JSON object. The body is `payload`, as it stands, where it is JSON; else `text` or `base64`."""
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
        # Outside its strings JSON has no line ends but as space, and inside them none at all.
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
    """The same JSON without anything a terminal could obey or the stream could not encode."""
    if text.isprintable() and (text.isascii() or not ascii_only):
        return text
    return "".join(
        c if c.isprintable() and (c.isascii() or not ascii_only) else json.dumps(c)[1:-1]  # whole pairs of surrogates
        for c in text
    )
