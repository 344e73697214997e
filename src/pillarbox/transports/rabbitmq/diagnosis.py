"""What a broker can be asked about itself and about what the settings want of it, over a plain connection.

Nothing is declared and nothing is left behind: exchanges and queues are asked for passively, and what is published is
addressed to a queue that nobody has, so that it comes back. How the arguments of a queue are read: see `queue_facts`.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import uuid4

from pillarbox.admin.diagnosis import Check, CheckResult, failed, passed, warned
from pillarbox.core.clock import Duration, seconds
from pillarbox.core.errors import UnavailableError
from pillarbox.transports.rabbitmq.address import RabbitMQAddress
from pillarbox.transports.rabbitmq.channel import Channel, ChannelRefused
from pillarbox.transports.rabbitmq.connection_manager import ConnectionManager, positive
from pillarbox.transports.rabbitmq.endpoint import endpoint_of
from pillarbox.transports.rabbitmq.queue_facts import NOBODY, QueueFacts, QueueReader, asked
from pillarbox.transports.rabbitmq.topology import Exchange, Queue, Topology

_NOT_FOUND = 404


class RabbitMQDiagnosis:
    """The checks of one broker. Connects when it is first asked. Raises ConfigurationError."""

    def __init__(
        self,
        url: str,
        *,
        exchanges: Sequence[Exchange] = (),
        queues: Sequence[Queue] = (),
        addresses: Mapping[str, RabbitMQAddress] | None = None,
        declare: bool = True,
        patience: Duration = "5s",
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """`addresses` are the destinations on this broker; `patience` bounds connecting and each answer."""
        self._endpoint = endpoint_of(url, tls)
        declared = Topology(exchanges=exchanges, queues=queues).declarations()
        self._queues = {item.name: item for item in declared if isinstance(item, Queue)}
        self._exchanges = {item.name: item for item in declared if isinstance(item, Exchange)}
        self._addresses = dict(addresses or {})
        self._declare = declare
        self._patience = positive("patience", patience)
        self._connections = ConnectionManager(
            self._endpoint,
            heartbeat=seconds("30s"),
            connect_timeout=self._patience,
            answer_timeout=self._patience,
            what="look",
        )

    def checks(self) -> Sequence[Check]:
        """In the order in which they explain each other."""
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
            link = await self._connections.ready(())
        except UnavailableError as error:
            return failed(
                str(error),
                "is the broker up, is the address right, are user, password and virtual host; from this machine",
            )
        told: Mapping[str, Any] = getattr(link.wire, "server_properties", None) or {}
        return passed(f"{told.get('product', 'a broker')} {told.get('version', '')} at {self._endpoint}")

    async def _alarms(self) -> CheckResult:
        try:
            await self._probe()
        except ChannelRefused:
            return passed("the broker takes messages, though not from this user for a queue by its name")
        except UnavailableError as error:
            if "is blocked" not in str(error):
                raise
            return failed(
                str(error), "`rabbitmqctl status` shows the alarm; free memory or disk there, or raise the limit"
            )
        return passed("no alarm: the broker takes messages")

    async def _confirms(self) -> CheckResult:
        try:
            confirmed = await self._probe()
        except ChannelRefused as refusal:
            return warned(
                f"nothing could be tried: {refusal}",
                "fine if this user is to publish to exchanges of its own only; else grant it to write to amq.default",
            )
        except UnavailableError as error:
            if "did not answer" not in str(error):
                raise
            return failed(
                f"a message that was published was not confirmed: {error}",
                "look at the broker's load and log; nothing is lost, events wait until they are confirmed",
            )
        if not confirmed:
            return failed(
                "the broker confirmed a message that it could not place, and did not send it back", "upgrade it"
            )
        return passed("messages are confirmed, and come back where no queue is bound")

    async def _destinations(self) -> CheckResult:
        wrong: list[str] = []
        doubtful: list[str] = []
        for name, address in self._addresses.items():
            said = await self._trouble(address)
            if said is not None:
                wrong.append(f"{name}: {said}")
            elif not self._bound(address):
                doubtful.append(f"{name}: no queue in the settings is bound to {address.exchange!r} for it")
        if wrong:
            return failed(
                "; ".join(wrong), "make it, correct the destination, or list it under the transport with declare"
            )
        if doubtful:
            return warned(
                "; ".join(doubtful),
                "fine if somebody else binds a queue; else events come back as unroutable: add a binding that fits",
            )
        if not self._addresses:
            return passed("no destination is named: each event goes to the queue named after its type")
        return passed(f"every exchange and queue is there: {', '.join(self._addresses)}")

    async def _trouble(self, address: RabbitMQAddress) -> str | None:
        """What is missing for a destination, and will not be declared by a relay."""
        if address.exchange:
            there = await self._passive("exchange_declare", exchange=address.exchange)
            known, what = address.exchange in self._exchanges, f"there is no exchange {address.exchange!r}"
        elif "{" in address.routing_key:
            return None
        else:
            there = await self._passive("queue_declare", queue=address.routing_key)
            known, what = True, f"there is no queue {address.routing_key!r}, so nothing can be routed to it"
        return None if there or (known and self._declare) else what

    def _bound(self, address: RabbitMQAddress) -> bool:
        """Is a queue bound for it, as far as the settings can tell?"""
        exchange = self._exchanges.get(address.exchange)
        if exchange is None or exchange.type not in ("direct", "fanout", "topic") or "{" in address.routing_key:
            return True
        patterns = [
            binding.routing_key
            for queue in self._queues.values()
            for binding in queue.bindings
            if binding.exchange == exchange.name
        ]
        return any(exchange.type == "fanout" or _fits(p, address.routing_key, exchange.type) for p in patterns)

    async def _topology(self) -> CheckResult:
        wrong = [
            f"queue {name!r} has {', '.join(facts.differences)}"
            for name, facts in (await self._facts()).items()
            if facts.differences
        ]
        if not wrong:
            return passed("what exists is what the settings say")
        fix = "change the settings, or delete what exists (its messages go with it)"
        if self._declare:
            return failed(f"{'; '.join(wrong)}: a relay will refuse to send", f"{fix}, or set declare = false")
        return warned("; ".join(wrong), fix)

    async def _overflow(self) -> CheckResult:
        dropping = [name for name, facts in (await self._facts()).items() if facts.drops]
        unsaid = [name for name in dropping if name not in self._queues or self._queues[name].overflow != "drop-head"]
        fix = 'overflow = "reject-publish" lets events wait in the outbox; a limit set by a policy is not seen here'
        if unsaid:
            return failed(f"throws away confirmed messages when it is full (drop-head): {', '.join(unsaid)}", fix)
        if dropping:
            return warned(f"drop-head, as the settings want it: {', '.join(dropping)} loses confirmed messages", fix)
        return passed("no queue throws confirmed messages away, unless a policy makes it")

    async def _queue_types(self) -> CheckResult:
        facts = await self._facts()
        if mortal := [name for name, one in facts.items() if not one.durable]:
            return failed(f"not durable, gone with the next restart: {', '.join(mortal)}", "declare it durable")
        if classic := [name for name, one in facts.items() if one.type == "classic"]:
            return warned(
                f"classic, so on one node only: {', '.join(classic)}",
                "a quorum queue survives the loss of a node, and takes messages twice as fast: make a new one",
            )
        return passed(f"durable quorum queues: {', '.join(facts)}" if facts else "no queue of the settings exists yet")

    async def _facts(self) -> dict[str, QueueFacts]:
        by_name = [a.routing_key for a in self._addresses.values() if not a.exchange and "{" not in a.routing_key]
        wanted = dict.fromkeys(by_name) | dict(self._queues)
        link = await self._connections.ready(())
        reader = QueueReader(self._endpoint, self._connections, link)
        found = {name: await reader.read(name, queue) for name, queue in wanted.items()}
        return {name: facts for name, facts in found.items() if facts is not None}

    async def _probe(self) -> bool:
        """Publish what nobody receives. True: it came back and was confirmed. Raises ChannelRefused,
        UnavailableError."""
        link = await self._connections.ready(())
        channel = Channel(self._endpoint)
        returned: list[object] = []

        def came_back(*message: object) -> None:
            returned.append(message)

        async def publish() -> None:
            await link.adopt(channel)
            channel.raw.add_on_return_callback(came_back)
            await channel.call(channel.raw.confirm_delivery, ack_nack_callback=channel.answered)
            channel.raw.basic_publish(exchange="", routing_key=f"{NOBODY}-{uuid4()}", body=b"", mandatory=True)
            await channel.answer()

        try:
            await self._connections.in_time(link, publish())
        finally:
            channel.close()
        return bool(returned)

    async def _passive(self, method: str, **named: str) -> bool:
        """Is there one? Raises UnavailableError where nobody may ask."""
        link = await self._connections.ready(())
        try:
            await self._connections.in_time(link, asked(link, self._endpoint, method, passive=True, **named))
        except ChannelRefused as refusal:
            if refusal.code == _NOT_FOUND:
                return False
            raise UnavailableError(str(refusal)) from refusal
        return True


def _fits(pattern: str, routing_key: str, exchange_type: str) -> bool:
    """Does a binding take this routing key? In a topic, `*` is one word and `#` any number of them."""
    if exchange_type != "topic":
        return pattern == routing_key
    return _words_fit(pattern.split("."), routing_key.split("."))


def _words_fit(pattern: list[str], words: list[str]) -> bool:
    if not pattern:
        return not words
    first, *rest = pattern
    if first == "#":
        return any(_words_fit(rest, words[at:]) for at in range(len(words) + 1))
    return bool(words) and first in ("*", words[0]) and _words_fit(rest, words[1:])
