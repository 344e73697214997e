"""Reads and changes streams with nats-py, without the transport under test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple
from urllib.parse import unquote

import nats
from nats.js import JetStreamContext
from nats.js.errors import NotFoundError


class Stored(NamedTuple):
    """A message of a stream; its headers are decoded."""

    subject: str
    body: bytes
    headers: dict[str, str]

    @property
    def event_id(self) -> str:
        return self.headers["eventId"]


@asynccontextmanager
async def jetstream(url: str) -> AsyncIterator[JetStreamContext]:
    client = await nats.connect(url.removeprefix("nats://").split(","))
    try:
        yield client.jetstream()
    finally:
        await client.close()


async def stored(url: str, stream: str) -> list[Stored]:
    """All messages of a stream, in their order; empty if there is no such stream."""
    async with jetstream(url) as server:
        try:
            state = (await server.stream_info(stream)).state
        except NotFoundError:
            return []
        subscription = await server.subscribe(">", stream=stream, ordered_consumer=True)
        found: list[Stored] = []
        for _ in range(state.messages):
            message = await subscription.next_msg(timeout=30)
            headers = {unquote(name): unquote(value) for name, value in (message.headers or {}).items()}
            found.append(Stored(message.subject, message.data, headers))
        return found


async def stored_ids(url: str, stream: str) -> list[str]:
    return [one.event_id for one in await stored(url, stream)]


async def count(url: str, stream: str) -> int:
    """How many messages a stream has."""
    async with jetstream(url) as server:
        return (await server.stream_info(stream)).state.messages


async def put(url: str, name: str, *ids: str) -> None:
    """Publish messages with these event ids to a stream, which is created if there is none."""
    async with jetstream(url) as server:
        await server.add_stream(name=name, subjects=[name], duplicate_window=120)
        for one in ids:
            await server.publish(name, b"{}", headers={"eventId": one})
