"""Removes one guard of the relay in this process.

A harness that does not detect the fault in a mutant would not detect it in Pillarbox either. A mutant does not start if
its guard is no longer where it is expected.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from typing import Any, Literal
from unittest.mock import ANY

from pillarbox import statements
from pillarbox.core.lane import LANES, Epochs
from pillarbox.core.transport import Outgoing, SendResult
from pillarbox.inbox import Inbox
from pillarbox.relay.in_flight import InFlight, Item
from pillarbox.stores.mariadb.writes import MariaDBWrites
from pillarbox.stores.sqlite.writes import SqliteWrites
from pillarbox.transports.handlers import HandlerTransport
from pillarbox.transports.kafka import KafkaTransport
from pillarbox.transports.nats import NatsTransport
from pillarbox.transports.rabbitmq import RabbitMQTransport, publisher
from pillarbox.transports.redis import RedisTransport
from pillarbox.transports.webhook import WebhookTransport

Guard = Literal["mandatory", "confirm", "epoch", "lane-lock", "held-back", "inbox"]


def without_mandatory() -> None:
    """The broker drops unroutable messages, and confirms them."""
    assert publisher._MANDATORY == b"\x01"
    _replace(publisher, "_MANDATORY", b"\x00")


def without_confirm() -> None:
    """Settle a message as soon as it is sent."""
    on_their_way: set[asyncio.Task[object]] = set()

    def begin(work: Coroutine[Any, Any, object]) -> None:
        task = asyncio.create_task(work)
        on_their_way.add(task)
        task.add_done_callback(on_their_way.discard)

    def hoping(send: Callable[[Any, Sequence[Outgoing]], Coroutine[Any, Any, object]]) -> object:
        async def send_and_hope(self: object, batch: Sequence[Outgoing]) -> list[SendResult]:
            begin(send(self, batch))
            return [None] * len(batch)

        return send_and_hope

    def streaming(stream: Callable[[Any, Sequence[Outgoing]], AsyncGenerator[object, None]]) -> object:
        async def stream_and_hope(
            self: object, batch: Sequence[Outgoing]
        ) -> AsyncGenerator[list[tuple[int, SendResult]], None]:
            async def call() -> None:
                async for _ in stream(self, batch):
                    continue

            begin(call())
            yield [(position, None) for position in range(len(batch))]

        return stream_and_hope

    for transport in (RabbitMQTransport, KafkaTransport, NatsTransport, RedisTransport):
        _replace(transport, "send", hoping(transport.send))
    for streams in (HandlerTransport, WebhookTransport):
        _replace(streams, "stream", streaming(streams.stream))


def without_epoch() -> None:
    """The owner of a lane is not checked."""
    _cut("pillarbox.stores.postgres", "fragment: fence", " AND l.epoch = e.epoch")
    in_own_lanes = MariaDBWrites._in_own_lanes

    def in_all_lanes(self: MariaDBWrites, _: Epochs, *arguments: Any, **more: Any) -> Any:
        return in_own_lanes(self, dict.fromkeys(range(LANES), ANY), *arguments, **more)

    async def nothing_at_once(self: SqliteWrites, epoch: int | None, decisions: object) -> int:
        return 0

    _replace(MariaDBWrites, "_in_own_lanes", in_all_lanes)
    _replace(SqliteWrites, "_owns", lambda *_: True)
    _replace(SqliteWrites, "_deliver", nothing_at_once)  # its one statement compares the epoch itself


def without_lane_lock() -> None:
    """The epochs are compared, but a lane may change its owner during a settlement."""
    _cut("pillarbox.stores.postgres", "fragment: fence", " FOR NO KEY UPDATE OF l")
    _cut("pillarbox.stores.mariadb", "name: lock_lanes", " FOR UPDATE")


def without_held_back() -> None:
    """A message that is retried does not hold its key back."""

    def stopped(self: InFlight, item: Item) -> list[Item]:
        self.confirmed(item)
        return []

    _replace(InFlight, "stopped", stopped)


def without_inbox() -> None:
    """Every event counts as new."""

    def admit(self: Inbox, *_: object) -> bool:
        return True

    async def aadmit(self: Inbox, *_: object) -> bool:
        return True

    _replace(Inbox, "admit", admit)
    _replace(Inbox, "aadmit", aadmit)


def _cut(store: str, heading: str, guard: str) -> None:
    """Cut a guard out of a statement of `lanes.sql`."""
    text = statements.text

    def cut(package: str, path: str) -> str:
        script = text(package, path)
        if (package, path) != (store, "lanes"):
            return script
        before, found, rest = script.partition(f"-- {heading}\n")
        statement, blank, after = rest.partition("\n\n")
        assert guard in statement
        return "".join([before, found, statement.replace(guard, ""), blank, after])

    _replace(statements, "text", cut)
    statements.load_statements.cache_clear()


def _replace(owner: object, name: str, by: object) -> None:
    assert hasattr(owner, name), f"{owner} has no {name} any more"
    setattr(owner, name, by)


MUTATIONS: dict[Guard, Callable[[], None]] = {
    "mandatory": without_mandatory,
    "confirm": without_confirm,
    "epoch": without_epoch,
    "lane-lock": without_lane_lock,
    "held-back": without_held_back,
    "inbox": without_inbox,
}


def mutate(guard: str) -> None:
    """Remove the guard of this name."""
    {str(name): mutation for name, mutation in MUTATIONS.items()}[guard]()
