"""The checks of a broker, and of what the settings want of it, over a plain connection.

The checks declare nothing and leave nothing behind: exchanges and queues are declared passively, and the message that
is published is addressed to a queue that does not exist, so that the broker returns it.

AMQP has no request for the arguments of a queue. A broker that is asked to declare an existing queue with other
arguments refuses, and names the first difference with its own value. `QueueReader` asks again with that value until all
arguments are known. One argument always has a value that no broker supports: if the queue is deleted meanwhile, the
broker does not create it.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from pillarbox.admin.diagnosis import Check, CheckResult, failed, passed, warned
from pillarbox.core.clock import Duration
from pillarbox.core.errors import UnavailableError
from pillarbox.transports.rabbitmq.connection import Connection, ConnectionManager, endpoint_of
from pillarbox.transports.rabbitmq.driver import ChannelRefused
from pillarbox.transports.rabbitmq.topology import (
    Argument,
    Exchange,
    Queue,
    RabbitMQAddress,
    RabbitMQOptions,
    Topology,
    same_queue_otherwise,
)

_UNKNOWN = "pillarbox-doctor"
"""A queue type, an overflow and a queue that no broker has."""
_MOST_ROUNDS = 20
_NOT_FOUND, _DIFFERENT = 404, 406
_ASKED_LAST = ("x-overflow", "x-queue-type")
"""Arguments that are sent with the unknown value; always at least one of them."""
_DIFFERENCE = re.compile(
    r"inequivalent arg '(?P<argument>[\w-]+)' for queue .*: received .* but current is "
    r"(?:none|the value '(?P<value>.*)' of type '(?P<type>\w+)'|'(?P<word>.*)')"
)


class RabbitMQDiagnosis:
    """The checks of one broker. Connects on first use. Raises ConfigurationError."""

    def __init__(
        self,
        url: str,
        *,
        exchanges: Sequence[Exchange] = (),
        queues: Sequence[Queue] = (),
        addresses: Mapping[str, RabbitMQAddress] | None = None,
        declare: bool = RabbitMQOptions.declare,
        timeout: Duration = "5s",
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """`addresses` are the destinations on this broker; `timeout` limits connecting and each answer."""
        self._endpoint = endpoint_of(url, tls)
        declared = Topology(exchanges=exchanges, queues=queues).declarations()
        self._queues = {item.name: item for item in declared if isinstance(item, Queue)}
        self._exchanges = {item.name: item for item in declared if isinstance(item, Exchange)}
        self._addresses = dict(addresses or {})
        self._declare = declare
        self._connections = ConnectionManager(
            self._endpoint,
            heartbeat=RabbitMQOptions.heartbeat,
            connect_timeout=timeout,
            answer_timeout=timeout,
            what="connection",
        )

    def checks(self) -> Sequence[Check]:
        """In this order: a failed check may explain later ones."""
        return [
            Check(name="transport.reachable", ask=self._reachable, gate=True),
            Check(name="transport.alarms", ask=self._alarms),
            Check(name="transport.confirms", ask=self._confirms),
            Check(name="transport.destinations", ask=self._destinations),
            Check(name="transport.topology", ask=self._topology),
            Check(name="transport.overflow", ask=self._overflow),
            Check(name="transport.queues", ask=self._queue_types),
        ]

    async def aclose(self) -> None:
        """Close what is open; closing twice is fine."""
        await self._connections.aclose()

    async def _reachable(self) -> CheckResult:
        try:
            connection = await self._connections.ready(())
        except UnavailableError as error:
            return failed(
                str(error),
                "check that the broker runs, and host, port, user, password and virtual host in the URL",
            )
        told: Mapping[str, Any] = getattr(connection.wire, "server_properties", None) or {}
        return passed(f"{told.get('product', 'a broker')} {told.get('version', '')} at {self._endpoint}")

    async def _alarms(self) -> CheckResult:
        try:
            await self._probe()
        except ChannelRefused:
            return passed(
                "no alarm: the broker accepts messages, but this user may not publish to the default exchange"
            )
        except UnavailableError as error:
            if "is blocked" not in str(error):
                raise
            return failed(
                str(error), "`rabbitmqctl status` shows the alarm; free memory or disk there, or raise the limit"
            )
        return passed("no alarm: the broker accepts messages")

    async def _confirms(self) -> CheckResult:
        try:
            confirmed = await self._probe()
        except ChannelRefused as refusal:
            return warned(
                f"cannot publish a test message: {refusal}",
                "fine if this user publishes to other exchanges only; else grant it write access to amq.default",
            )
        except UnavailableError as error:
            if "did not answer" not in str(error):
                raise
            return failed(
                f"the broker did not confirm a test message: {error}",
                "check the broker's load and log; unconfirmed events stay in the outbox",
            )
        if not confirmed:
            return failed("the broker confirmed an unroutable message and did not return it", "upgrade the broker")
        return passed("the broker confirms messages, and returns unroutable ones")

    async def _destinations(self) -> CheckResult:
        wrong: list[str] = []
        doubtful: list[str] = []
        for name, address in self._addresses.items():
            missing = await self._missing(address)
            if missing is not None:
                wrong.append(f"{name}: {missing}")
            elif not self._bound(address):
                doubtful.append(f"{name}: no configured queue is bound to {address.exchange!r} for its routing key")
        if wrong:
            return failed(
                "; ".join(wrong),
                "create it, correct the destination, or add it to the transport's settings with declare = true",
            )
        if doubtful:
            return warned(
                "; ".join(doubtful),
                "fine if another application binds one; else the broker returns events as unroutable: add a binding",
            )
        if not self._addresses:
            return passed("no destination is configured: each event goes to the queue named after its type")
        return passed(f"every exchange and queue exists: {', '.join(self._addresses)}")

    async def _missing(self, address: RabbitMQAddress) -> str | None:
        """What a destination needs that is missing and that no relay declares."""
        if address.exchange:
            there = await self._exists("exchange_declare", exchange=address.exchange)
            known, what = address.exchange in self._exchanges, f"exchange {address.exchange!r} does not exist"
        elif "{" in address.routing_key:
            return None
        else:
            there = await self._exists("queue_declare", queue=address.routing_key)
            known, what = True, f"queue {address.routing_key!r} does not exist"
        return None if there or (known and self._declare) else what

    def _bound(self, address: RabbitMQAddress) -> bool:
        """Whether a queue is bound for it, as far as the settings can tell."""
        exchange = self._exchanges.get(address.exchange)
        if exchange is None or exchange.type not in ("direct", "fanout", "topic") or "{" in address.routing_key:
            return True
        patterns = [
            binding.routing_key
            for queue in self._queues.values()
            for binding in queue.bindings
            if binding.exchange == exchange.name
        ]
        return any(exchange.type == "fanout" or _matches(p, address.routing_key, exchange.type) for p in patterns)

    async def _topology(self) -> CheckResult:
        wrong = [
            f"queue {name!r} has {', '.join(facts.differences)}"
            for name, facts in (await self._facts()).items()
            if facts.differences
        ]
        if not wrong:
            return passed("existing queues match the settings")
        fix = "change the settings, or delete the queue with its messages"
        if self._declare:
            return failed(
                f"{'; '.join(wrong)}: the relay sends nothing until this is corrected", f"{fix}, or set declare = false"
            )
        return warned("; ".join(wrong), fix)

    async def _overflow(self) -> CheckResult:
        dropping = [name for name, facts in (await self._facts()).items() if facts.drops]
        unconfigured = [
            name for name in dropping if name not in self._queues or self._queues[name].overflow != "drop-head"
        ]
        fix = 'set overflow = "reject-publish": then events wait in the outbox. Limits of policies are not visible here'
        if unconfigured:
            return failed(f"discards confirmed messages when it is full (drop-head): {', '.join(unconfigured)}", fix)
        if dropping:
            return warned(
                f"discards confirmed messages when it is full, as configured (drop-head): {', '.join(dropping)}", fix
            )
        return passed("no queue discards confirmed messages; limits of policies are not visible here")

    async def _queue_types(self) -> CheckResult:
        facts = await self._facts()
        if transient := [name for name, one in facts.items() if not one.durable]:
            return failed(
                f"not durable, deleted by the next restart of the broker: {', '.join(transient)}", "declare it durable"
            )
        if classic := [name for name, one in facts.items() if one.type == "classic"]:
            return warned(
                f"classic, on one node only: {', '.join(classic)}",
                "use a new quorum queue: it survives the loss of a node, and accepts messages twice as fast",
            )
        return passed(f"durable quorum queues: {', '.join(facts)}" if facts else "no configured queue exists yet")

    async def _facts(self) -> dict[str, QueueFacts]:
        by_name = [a.routing_key for a in self._addresses.values() if not a.exchange and "{" not in a.routing_key]
        wanted = dict.fromkeys(by_name) | dict(self._queues)
        reader = QueueReader(self._connections, await self._connections.ready(()))
        found = {name: await reader.read(name, queue) for name, queue in wanted.items()}
        return {name: facts for name, facts in found.items() if facts is not None}

    async def _probe(self) -> bool:
        """Publish an unroutable message; True if the broker returned and confirmed it. Raises ChannelRefused,
        UnavailableError."""
        connection = await self._connections.ready(())
        returned: list[object] = []

        def on_return(*message: object) -> None:
            returned.append(message)

        async def publish() -> None:
            async with connection.channel() as channel:
                channel.raw.add_on_return_callback(on_return)
                await channel.call(channel.raw.confirm_delivery, ack_nack_callback=channel.answered)
                channel.raw.basic_publish(exchange="", routing_key=f"{_UNKNOWN}-{uuid4()}", body=b"", mandatory=True)
                await channel.answer()

        await self._connections.in_time(connection, publish())
        return bool(returned)

    async def _exists(self, method: str, **named: str) -> bool:
        """Raises UnavailableError if this user may not ask."""
        connection = await self._connections.ready(())
        try:
            await self._connections.in_time(connection, _ask(connection, method, passive=True, **named))
        except ChannelRefused as refusal:
            if refusal.code == _NOT_FOUND:
                return False
            raise UnavailableError(str(refusal)) from refusal
        return True


def _matches(pattern: str, routing_key: str, exchange_type: str) -> bool:
    """Whether a binding matches this routing key. In a topic, `*` is one word and `#` any number of them."""
    if exchange_type != "topic":
        return pattern == routing_key
    return _words_match(pattern.split("."), routing_key.split("."))


def _words_match(pattern: list[str], words: list[str]) -> bool:
    if not pattern:
        return not words
    first, *rest = pattern
    if first == "#":
        return any(_words_match(rest, words[at:]) for at in range(len(words) + 1))
    return bool(words) and first in ("*", words[0]) and _words_match(rest, words[1:])


@dataclass(slots=True, kw_only=True)
class QueueFacts:
    """A queue as the broker has it."""

    durable: bool = True
    arguments: dict[str, Argument] = field(default_factory=dict)
    differences: list[str] = field(default_factory=list)
    """From the settings."""

    @property
    def type(self) -> str:
        return str(self.arguments.get("x-queue-type", "classic"))

    @property
    def drops(self) -> bool:
        """Whether it drops confirmed messages when it is full, the broker's default."""
        limited = {"x-max-length", "x-max-length-bytes"} & self.arguments.keys()
        return bool(limited) and self.arguments.get("x-overflow", "drop-head") == "drop-head"


class QueueReader:
    """Reads queues over one connection."""

    def __init__(self, connections: ConnectionManager, connection: Connection) -> None:
        self._connections = connections
        self._connection = connection

    async def read(self, name: str, wanted: Queue | None) -> QueueFacts | None:
        """The queue, compared with what is wanted; None if there is none. Raises UnavailableError if this user may not
        ask."""
        facts = QueueFacts(arguments={} if wanted is None else wanted.all_arguments())
        said = dict(facts.arguments)
        unknown: set[str] = set(_ASKED_LAST)
        for _ in range(_MOST_ROUNDS):
            told = await self._difference(name, facts, unknown)
            if told is None:
                return None
            argument, value = told
            if argument == "durable":
                facts.durable = False
            elif value is None:
                facts.arguments.pop(argument, None)
            else:
                facts.arguments[argument] = value
            unknown.discard(argument)
            # A queue that was declared without a type is classic.
            usual = "classic" if argument == "x-queue-type" else None
            if wanted is not None and said.get(argument, usual) != (usual if value is None else value):
                facts.differences.append(f"{argument} {'none' if value is None else value}")
            if not unknown:
                other = None if wanted is None else same_queue_otherwise(wanted)
                if other is not None and facts.durable and facts.arguments == other.all_arguments():
                    facts.differences.clear()
                return facts
        raise UnavailableError(f"queue {name!r} has more arguments than could be read")

    async def _difference(self, name: str, facts: QueueFacts, unknown: set[str]) -> tuple[str, Argument | None] | None:
        """The first argument that differs on the broker, and its value there; None if there is no such queue."""
        arguments = facts.arguments | dict.fromkeys(unknown, _UNKNOWN)
        try:
            for asked in ({"passive": True}, {"durable": facts.durable, "arguments": arguments}):
                asking = _ask(self._connection, "queue_declare", queue=name, **asked)
                await self._connections.in_time(self._connection, asking)
        except ChannelRefused as refusal:
            if refusal.code == _NOT_FOUND or (refusal.code == _DIFFERENT and "invalid arg" in str(refusal)):
                return None
            if refusal.code == _DIFFERENT and (found := _DIFFERENCE.search(str(refusal))):
                return found["argument"], _value(found, arguments.get(found["argument"]))
            raise UnavailableError(f"queue {name!r} cannot be read: {refusal}") from refusal
        raise UnavailableError(f"queue {name!r} was declared with arguments that no broker supports")


async def _ask(connection: Connection, method: str, **arguments: Any) -> None:
    """One request on its own channel, which the broker closes if it refuses. Raises ChannelRefused,
    UnavailableError."""
    async with connection.channel() as channel:
        await channel.call(getattr(channel.raw, method), **arguments)


def _value(found: re.Match[str], received: Argument | None) -> Argument | None:
    """The value on the broker, which names its type only if it received none."""
    if found["value"] is None:
        return int(found["word"]) if type(received) is int else found["word"]
    if found["type"] == "longstr":
        return found["value"]
    return found["value"] == "true" if found["type"] == "bool" else int(found["value"])
