"""Who follows a live feed, and how they hear of news: one look at the database for all of them.

What must stay true: a follower costs a place in a feed and nothing else. Nothing is queued for anybody: who is slow
reads on from the database when they are ready, and who was away says where they were (`Last-Event-ID`).
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
"""Notifications read at once for one follower."""
COME_BACK_AFTER = 2_000
"""Milliseconds that a client waits before it connects again."""


@dataclass(eq=False, slots=True)
class Follower:
    """One client."""

    user_id: int
    place: int
    news: asyncio.Event = field(default_factory=asyncio.Event)


class Live:
    """All followers of this process. `look_out` runs as long as the application; `close` ends every stream."""

    def __init__(self, feed: FeedQueries, *, look_every: float, heartbeat: float, most_followers: int) -> None:
        """
        look_every: seconds between two looks for news.
        heartbeat: seconds of silence after which a client is told that somebody is there.
        """
        self._feed = feed
        self._look_every = look_every
        self._heartbeat = heartbeat
        self._most = most_followers
        self._followers: set[Follower] = set()
        self._closing = asyncio.Event()

    @property
    def followers(self) -> int:
        return len(self._followers)

    async def begin(self, user_id: int, after: int | None) -> Follower:
        """A new follower; without a place they hear of what comes from now on. Raises Problem if there are too many."""
        if len(self._followers) >= self._most or self._closing.is_set():
            raise Problem(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "busy",
                "too many follow live already; try again soon",
                headers={"Retry-After": "5"},
            )
        if after is None:
            after = (await run_in_threadpool(self._feed.ends, [user_id])).get(user_id, 0)
        return Follower(user_id, after)

    async def stream(self, follower: Follower) -> AsyncIterator[bytes]:
        """Server-Sent Events until the client goes or the service stops."""
        self._followers.add(follower)
        try:
            yield f"retry: {COME_BACK_AFTER}\n\n".encode()
            while not self._closing.is_set():
                follower.news.clear()
                entries = await run_in_threadpool(self._feed.after, follower.user_id, follower.place, most=BATCH)
                for entry in entries:
                    yield _event(entry)
                    follower.place = entry.place
                if not entries and not await _happens(follower.news, within=self._heartbeat):
                    yield b": nothing new\n\n"
        except (DBAPIError, NoConnection) as error:
            logger.warning("a live stream ends, its client will come back: %s", type(error).__name__)
        finally:
            self._followers.discard(follower)

    async def look_out(self) -> None:
        """Wake those for whom there is news."""
        while not await _happens(self._closing, within=self._look_every):
            if not self._followers:
                continue
            try:
                ends = await run_in_threadpool(self._feed.ends, {one.user_id for one in self._followers})
            except (DBAPIError, NoConnection) as error:
                logger.warning("cannot look for news: %s", type(error).__name__)
                continue
            for one in self._followers:
                if ends.get(one.user_id, 0) > one.place:
                    one.news.set()

    def close(self) -> None:
        """End all streams; clients come back and say where they were."""
        self._closing.set()
        for one in self._followers:
            one.news.set()


def _event(entry: Entry) -> bytes:
    """JSON has no line breaks of its own, so that one line of data is enough."""
    return f"id: {entry.place}\nevent: notification\ndata: {entry.notification.model_dump_json()}\n\n".encode()


async def _happens(event: asyncio.Event, *, within: float) -> bool:
    with suppress(TimeoutError):
        async with asyncio.timeout(within):
            await event.wait()
    return event.is_set()
