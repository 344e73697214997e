"""Reads the arguments of existing queues.

AMQP has no request for the arguments of a queue. A broker that is asked to declare an existing queue with other
arguments refuses, and names the first difference with its own value. `QueueReader` asks again with that value until all
arguments are known. One argument always has a value that no broker supports: if the queue is deleted meanwhile, the
broker does not create it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from pillarbox.core.errors import UnavailableError
from pillarbox.transports.rabbitmq.confirms import ChannelRefused
from pillarbox.transports.rabbitmq.connection import RabbitMQConnection, RabbitMQConnector
from pillarbox.transports.rabbitmq.topology import Argument, Queue, alternative_queue

UNKNOWN = "pillarbox-doctor"
"""A queue type, an overflow and a queue that no broker has."""
NOT_FOUND = 404
_DIFFERENT = 406
_MAX_ROUNDS = 20
_ASKED_LAST = ("x-overflow", "x-queue-type")
"""Arguments that are sent with the unknown value; always at least one of them."""
_DIFFERENCE = re.compile(
    r"inequivalent arg '(?P<argument>[\w-]+)' for queue .*: received .* but current is "
    r"(?:none|the value '(?P<value>.*)' of type '(?P<type>\w+)'|'(?P<word>.*)')"
)


@dataclass(slots=True, kw_only=True)
class QueueFacts:
    """A queue as the broker has it."""

    durable: bool = True
    auto_delete: bool = False
    """Whether the broker deletes it with its last consumer."""
    arguments: dict[str, Argument] = field(default_factory=dict)
    differences: list[str] = field(default_factory=list)
    """From the settings."""

    @property
    def type(self) -> str:
        return str(self.arguments.get("x-queue-type", "classic"))

    @property
    def kept(self) -> bool:
        """Whether it and its messages survive restarts of the broker and of consumers."""
        return self.durable and not self.auto_delete

    @property
    def drops(self) -> bool:
        """Whether it drops confirmed messages when it is full, the broker's default."""
        limited = {"x-max-length", "x-max-length-bytes"} & self.arguments.keys()
        return bool(limited) and self.arguments.get("x-overflow", "drop-head") == "drop-head"


class QueueReader:
    """Reads queues over one connection."""

    def __init__(self, connector: RabbitMQConnector, connection: RabbitMQConnection) -> None:
        self._connector = connector
        self._connection = connection

    async def read(self, wanted: Queue) -> QueueFacts | None:
        """The queue, compared with what is wanted; None if there is none. Raises UnavailableError if this user lacks
        permission."""
        facts = QueueFacts(arguments=wanted.all_arguments())
        said = dict(facts.arguments)
        unknown: set[str] = set(_ASKED_LAST)
        for _ in range(_MAX_ROUNDS):
            found = await self._difference(wanted.name, facts, unknown)
            if found is None:
                return None
            argument, value = found
            if argument == "durable":
                facts.durable = False
            elif argument == "auto_delete":
                facts.auto_delete = True
            elif value is None:
                facts.arguments.pop(argument, None)
            else:
                facts.arguments[argument] = value
            unknown.discard(argument)
            # A queue that was declared without a type is classic.
            usual = "classic" if argument == "x-queue-type" else None
            if said.get(argument, usual) != (usual if value is None else value):
                facts.differences.append(f"{argument} {'none' if value is None else value}")
            if not unknown:
                other = alternative_queue(wanted)
                if other is not None and facts.kept and facts.arguments == other.all_arguments():
                    facts.differences.clear()
                return facts
        raise UnavailableError(f"{wanted.label} has more arguments than could be read")

    async def _difference(self, name: str, facts: QueueFacts, unknown: set[str]) -> tuple[str, Argument | None] | None:
        """The first argument that differs on the broker, and its value there; None if there is no such queue."""
        arguments = facts.arguments | dict.fromkeys(unknown, UNKNOWN)
        try:
            for asked in ({"passive": True}, _declaration(facts, arguments)):
                asking = ask(self._connection, "queue_declare", queue=name, **asked)
                await self._connector.in_time(self._connection, asking)
        except ChannelRefused as refusal:
            if refusal.code == NOT_FOUND or (refusal.code == _DIFFERENT and "invalid arg" in str(refusal)):
                return None
            if refusal.code == _DIFFERENT and (found := _DIFFERENCE.search(str(refusal))):
                return found["argument"], _value(found, arguments.get(found["argument"]))
            raise UnavailableError(f"queue {name!r} cannot be read: {refusal}") from refusal
        raise UnavailableError(f"queue {name!r} was declared with arguments that no broker supports")


def _declaration(facts: QueueFacts, arguments: dict[str, Argument]) -> dict[str, Any]:
    return {"durable": facts.durable, "auto_delete": facts.auto_delete, "arguments": arguments}


async def ask(connection: RabbitMQConnection, method: str, **arguments: Any) -> None:
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
