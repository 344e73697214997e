"""The clients of the live feed. One query of the database finds new notifications for all of them.

Invariant: a client costs its position in the feed and no queue. A slow client reads from the database when it is ready,
and a client that reconnects sends its position (`Last-Event-ID`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus

from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as NoConnection
from starlette.concurrency import run_in_threadpool

from apps.notifications.api.problems import Problem
from apps.notifications.api.queries.feed import Entry, FeedQueries

logger = logging.getLogger("notifications.live")

BATCH = 50
"""Notifications read at once for one client."""
RECONNECT_AFTER = 2_000
"""Milliseconds that a client waits before it reconnects."""


@dataclass(eq=False, slots=True)
class Follower:
    """One client of the feed."""

    user_id: int
    position: int
    changed: asyncio.Event = field(default_factory=asyncio.Event)


class Live:
    """All followers of this process. `poll` runs as long as the application; `close` ends every stream."""

    def __init__(self, feed: FeedQueries, *, poll_every: float, heartbeat: float, most_followers: int) -> None:
        """
        poll_every: seconds between two polls.
        heartbeat: seconds without a notification after which the stream sends a comment.
        """
        self._feed = feed
        self._poll_every = poll_every
        self._heartbeat = heartbeat
        self._most = most_followers
        self._followers: set[Follower] = set()
        self._closing = asyncio.Event()

    @property
    def followers(self) -> int:
        return len(self._followers)

    async def begin(self, user_id: int, after: int | None) -> Follower:
        """Add a follower; without a position it gets only new notifications. Raises Problem if there are too many."""
        if len(self._followers) >= self._most or self._closing.is_set():
            raise Problem(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "busy",
                "too many live streams; retry in 5 s",
                headers={"Retry-After": "5"},
            )
        if after is None:
            after = (await run_in_threadpool(self._feed.ends, [user_id])).get(user_id, 0)
        return Follower(user_id, after)

    async def stream(self, follower: Follower) -> AsyncIterator[bytes]:
        """Server-Sent Events until the client disconnects or the service stops."""
        self._followers.add(follower)
        try:
            yield f"retry: {RECONNECT_AFTER}\n\n".encode()
            while not self._closing.is_set():
                follower.changed.clear()
                entries = await run_in_threadpool(self._feed.after, follower.user_id, follower.position, most=BATCH)
                for entry in entries:
                    yield _event(entry)
                    follower.position = entry.position
                if not entries and not await _is_set(follower.changed, within=self._heartbeat):
                    yield b": nothing new\n\n"
        except (DBAPIError, NoConnection) as error:
            logger.warning("a live stream failed, its client will reconnect: %s", type(error).__name__)
        finally:
            self._followers.discard(follower)

    async def poll(self) -> None:
        """Wake the followers that have new notifications."""
        while not await _is_set(self._closing, within=self._poll_every):
            if not self._followers:
                continue
            try:
                ends = await run_in_threadpool(self._feed.ends, {one.user_id for one in self._followers})
            except (DBAPIError, NoConnection) as error:
                logger.warning("cannot poll for new notifications: %s", type(error).__name__)
                continue
            for one in self._followers:
                if ends.get(one.user_id, 0) > one.position:
                    one.changed.set()

    def close(self) -> None:
        """End all streams; clients reconnect with their positions."""
        self._closing.set()
        for one in self._followers:
            one.changed.set()


def _event(entry: Entry) -> bytes:
    """One line of data is enough, because JSON contains no line breaks."""
    return f"id: {entry.position}\nevent: notification\ndata: {entry.notification.model_dump_json()}\n\n".encode()


async def _is_set(event: asyncio.Event, *, within: float) -> bool:
    with suppress(TimeoutError):
        async with asyncio.timeout(within):
            await event.wait()
    return event.is_set()
