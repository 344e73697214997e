"""The checks of a broker, and of what the settings want of it, over a plain connection.

The checks declare nothing and leave nothing behind: exchanges and queues are declared passively, and the message that
is published is addressed to a queue that does not exist, so that the broker returns it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import uuid4

from pillarbox.admin.diagnosis import Check, CheckResult, failed, passed, warned
from pillarbox.core.clock import Duration
from pillarbox.core.errors import UnavailableError
from pillarbox.settings.tls import Tls
from pillarbox.transports.rabbitmq.confirms import ChannelRefused
from pillarbox.transports.rabbitmq.connection import RabbitMQConnector
from pillarbox.transports.rabbitmq.plugin import BrokerEndpoint, RabbitMQAddress, RabbitMQOptions
from pillarbox.transports.rabbitmq.queue_reader import NOT_FOUND, UNKNOWN, QueueFacts, QueueReader, ask
from pillarbox.transports.rabbitmq.topology import Exchange, Queue, Topology


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
        tls: Tls = None,
    ) -> None:
        """`addresses` are the destinations on this broker; `timeout` limits connecting and each reply."""
        self._endpoint = BrokerEndpoint.parse(url, tls)
        declared = Topology(exchanges=exchanges, queues=queues).declarations()
        self._queues = {item.name: item for item in declared if isinstance(item, Queue)}
        self._exchanges = {item.name: item for item in declared if isinstance(item, Exchange)}
        self._addresses = dict(addresses or {})
        self._declare = declare
        self._connector = RabbitMQConnector(
            self._endpoint,
            heartbeat=RabbitMQOptions.heartbeat,
            connect_timeout=timeout,
            reply_timeout=timeout,
            what="connection",
        )

    def checks(self) -> Sequence[Check]:
        """In this order: a failed check may explain later ones."""
        return [
            Check(name="transport.reachable", ask=self._reachable, prerequisite=True),
            Check(name="transport.alarms", ask=self._alarms),
            Check(name="transport.confirms", ask=self._confirms),
            Check(name="transport.destinations", ask=self._destinations),
            Check(name="transport.topology", ask=self._topology),
            Check(name="transport.overflow", ask=self._overflow),
            Check(name="transport.queues", ask=self._queue_types),
        ]

    async def aclose(self) -> None:
        """Close what is open; closing twice is fine."""
        await self._connector.aclose()

    async def _reachable(self) -> CheckResult:
        try:
            connection = await self._connector.ready(())
        except UnavailableError as error:
            return failed(
                str(error),
                "check that the broker runs, and host, port, user, password and virtual host in the URL",
            )
        properties: Mapping[str, Any] = getattr(connection.wire, "server_properties", None) or {}
        return passed(f"{properties.get('product', 'a broker')} {properties.get('version', '')} at {self._endpoint}")

    async def _alarms(self) -> CheckResult:
        try:
            await self._probe()
        except ChannelRefused:
            return passed(
                "no alarm: the broker accepts messages, but this user lacks write access to the default exchange"
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
            if "did not respond" not in str(error):
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
        """Whether a queue is bound for it, as far as the settings show."""
        exchange = self._exchanges.get(address.exchange)
        if exchange is None or exchange.type not in ("direct", "fanout", "topic") or "{" in address.routing_key:
            return True
        patterns = [
            binding.routing_key
            for queue in self._queues.values()
            for binding in queue.bindings
            if binding.exchange == exchange.name
        ]
        return any(address.matches(pattern, exchange.type) for pattern in patterns)

    async def _topology(self) -> CheckResult:
        declared = self._facts() if self._declare else self._facts(self._queues)
        different = {name: facts for name, facts in (await declared).items() if facts.differences}
        if not different:
            return passed("existing queues match the settings")
        wrong = "; ".join(f"queue {name!r} has {', '.join(facts.differences)}" for name, facts in different.items())
        fix = "change the settings, or delete the queue with its messages"
        if self._declare and not all(facts.kept for facts in different.values()):
            return failed(
                f"{wrong}: the relay sends nothing, because it would be lost with the queue",
                f"declare it durable and without auto-delete in the other application; {fix}",
            )
        return warned(f"{wrong}: the relay uses it as it is", f"fine if another application declares it; else {fix}")

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
        if transient := [name for name, one in facts.items() if not one.kept]:
            return failed(
                "deleted by the next restart of the broker (not durable) or with its last consumer (auto-delete): "
                f"{', '.join(transient)}",
                "declare it durable and without auto-delete",
            )
        if classic := [name for name, one in facts.items() if one.type == "classic"]:
            return warned(
                f"classic, on one node only: {', '.join(classic)}",
                "use a new quorum queue: it survives the loss of a node, and accepts messages twice as fast",
            )
        return passed(f"durable quorum queues: {', '.join(facts)}" if facts else "no configured queue exists yet")

    async def _facts(self, wanted: Mapping[str, Queue] | None = None) -> dict[str, QueueFacts]:
        """The existing queues among those wanted; unless given, the configured ones and those that an event declares
        by the name of its destination."""
        by_name = [a.routing_key for a in self._addresses.values() if not a.exchange and "{" not in a.routing_key]
        asked = {name: Queue(name=name) for name in by_name} | self._queues if wanted is None else wanted
        reader = QueueReader(self._connector, await self._connector.ready(()))
        found = {name: await reader.read(queue) for name, queue in asked.items()}
        return {name: facts for name, facts in found.items() if facts is not None}

    async def _probe(self) -> bool:
        """Publish an unroutable message; True if the broker returned and confirmed it. Raises ChannelRefused,
        UnavailableError."""
        connection = await self._connector.ready(())
        returned: list[object] = []

        def on_return(*message: object) -> None:
            returned.append(message)

        async def publish() -> None:
            async with connection.channel() as channel:
                channel.raw.add_on_return_callback(on_return)
                await channel.call(channel.raw.confirm_delivery, ack_nack_callback=channel.replied)
                channel.raw.basic_publish(exchange="", routing_key=f"{UNKNOWN}-{uuid4()}", body=b"", mandatory=True)
                await channel.reply()

        await self._connector.in_time(connection, publish())
        return bool(returned)

    async def _exists(self, method: str, **named: str) -> bool:
        """Raises UnavailableError if this user lacks permission."""
        connection = await self._connector.ready(())
        try:
            await self._connector.in_time(connection, ask(connection, method, passive=True, **named))
        except ChannelRefused as refusal:
            if refusal.code == NOT_FOUND:
                return False
            raise UnavailableError(str(refusal)) from refusal
        return True
