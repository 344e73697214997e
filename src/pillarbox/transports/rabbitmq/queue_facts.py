"""A queue as the broker has it, read without a question for it in the protocol.

A broker that is asked to declare a queue which exists with other arguments refuses, and names the first that differs
with its own value. Asked again with that value it names the next, until all that matter are known. Each time one
argument has a value that no broker knows: if the queue is gone meanwhile, the broker refuses to make one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from pillarbox.core.errors import UnavailableError
from pillarbox.transports.rabbitmq.channel import Channel, ChannelRefused
from pillarbox.transports.rabbitmq.connection import Connection
from pillarbox.transports.rabbitmq.connection_manager import ConnectionManager
from pillarbox.transports.rabbitmq.endpoint import Endpoint
from pillarbox.transports.rabbitmq.topology import Argument, Queue, same_queue_otherwise

NOBODY = "pillarbox-doctor"
"""A queue type, an overflow and a queue that no broker knows."""

_MOST_ROUNDS = 20
_NOT_FOUND, _DIFFERENT = 404, 406
_LAST = ("x-overflow", "x-queue-type")
"""What is asked for with a value that nobody knows; always at least one of them."""
_DIFFERENCE = re.compile(
    r"inequivalent arg '(?P<argument>[\w-]+)' for queue .*: received .* but current is "
    r"(?:none|the value '(?P<value>.*)' of type '(?P<type>\w+)'|'(?P<word>.*)')"
)


@dataclass(slots=True, kw_only=True)
class QueueFacts:
    """A queue as the broker has it."""

    durable: bool = True
    arguments: dict[str, Argument] = field(default_factory=dict)
    differences: list[str] = field(default_factory=list)
    """What the settings say otherwise."""

    @property
    def type(self) -> str:
        return str(self.arguments.get("x-queue-type", "classic"))

    @property
    def drops(self) -> bool:
        """Does it throw confirmed messages away when it is full? That is what a broker does unless told otherwise."""
        limited = {"x-max-length", "x-max-length-bytes"} & self.arguments.keys()
        return bool(limited) and self.arguments.get("x-overflow", "drop-head") == "drop-head"


class QueueReader:
    """Reads queues over one connection."""

    def __init__(self, endpoint: Endpoint, line: ConnectionManager, link: Connection) -> None:
        self._endpoint = endpoint
        self._connections = line
        self._link = link

    async def read(self, name: str, wanted: Queue | None) -> QueueFacts | None:
        """The queue, compared with what is wanted; None if there is none. Raises UnavailableError where nobody may
        ask."""
        facts = QueueFacts(arguments={} if wanted is None else wanted.all_arguments())
        said = dict(facts.arguments)
        unknown: set[str] = set(_LAST)
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
            # Classic is what a queue is that was declared without a type.
            usual = "classic" if argument == "x-queue-type" else None
            if wanted is not None and said.get(argument, usual) != (usual if value is None else value):
                facts.differences.append(f"{argument} {'none' if value is None else value}")
            if not unknown:
                if wanted is not None and _is_the_other(wanted, facts):
                    facts.differences.clear()
                return facts
        raise UnavailableError(f"queue {name!r} has more arguments than could be read")

    async def _difference(self, name: str, facts: QueueFacts, unknown: set[str]) -> tuple[str, Argument | None] | None:
        """The first argument that the broker has otherwise, and its value; None if there is no such queue."""
        arguments = facts.arguments | dict.fromkeys(unknown, NOBODY)
        try:
            passively = asked(self._link, self._endpoint, "queue_declare", queue=name, passive=True)
            await self._connections.in_time(self._link, passively)
            asking = asked(
                self._link, self._endpoint, "queue_declare", queue=name, durable=facts.durable, arguments=arguments
            )
            await self._connections.in_time(self._link, asking)
        except ChannelRefused as refusal:
            if refusal.code == _NOT_FOUND or (refusal.code == _DIFFERENT and "invalid arg" in str(refusal)):
                return None
            if refusal.code == _DIFFERENT and (found := _DIFFERENCE.search(str(refusal))):
                return found["argument"], _value(found, arguments.get(found["argument"]))
            raise UnavailableError(f"queue {name!r} cannot be looked at: {refusal}") from refusal
        raise UnavailableError(f"queue {name!r} took arguments that no broker knows")


def _is_the_other(wanted: Queue, facts: QueueFacts) -> bool:
    other = same_queue_otherwise(wanted)
    return other is not None and facts.durable and facts.arguments == other.all_arguments()


async def asked(link: Connection, endpoint: Endpoint, method: str, **arguments: Any) -> None:
    """One question on a channel of its own, which a refusal closes. Raises ChannelRefused, UnavailableError."""
    channel = Channel(endpoint)
    try:
        await link.adopt(channel)
        await channel.call(getattr(channel.raw, method), **arguments)
    finally:
        channel.close()


def _value(found: re.Match[str], received: Argument | None) -> Argument | None:
    """The value that the broker has; it names the type of a value only if none was received."""
    if found["value"] is None:
        return int(found["word"]) if type(received) is int else found["word"]
    if found["type"] == "longstr":
        return found["value"]
    return found["value"] == "true" if found["type"] == "bool" else int(found["value"])
