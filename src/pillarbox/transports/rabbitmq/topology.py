"""What shall exist on the broker, as values: exchanges, queues, bindings, dead letters.

Everything is durable unless said otherwise, queues are quorum queues unless said otherwise (safer, and twice as fast to
publish to), and nothing here drops a confirmed message unless that is written out: a limit on length implies
`reject-publish`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from pillarbox.admin.broker_dead_letters import dead_letter_queue
from pillarbox.core.clock import Duration, seconds
from pillarbox.core.errors import ConfigurationError
from pillarbox.settings import Choice, Flag, Pairs, Span, Text, Whole, about, listed, maybe, setting
from pillarbox.transports.rabbitmq.names import check_name, fits

ExchangeType = Literal["direct", "fanout", "headers", "topic"]
QueueType = Literal["quorum", "classic"]
Overflow = Literal["reject-publish", "reject-publish-dlx", "drop-head"]
Argument = str | int | bool

_EXCHANGE_TYPES = ("direct", "fanout", "headers", "topic")
_OWN_ARGUMENTS = {
    "x-queue-type": "type",
    "x-max-length": "max_length",
    "x-message-ttl": "message_ttl",
    "x-overflow": "overflow",
    "x-delivery-limit": "delivery_limit",
    "x-dead-letter-exchange": "dead_letter",
    "x-dead-letter-routing-key": "dead_letter",
}
_NOT_FOR_QUORUM = ("x-max-priority", "x-queue-mode", "x-queue-master-locator")
DELIVERY_LIMIT = 20
"""What RabbitMQ 4 has for every quorum queue, too."""
_LONGEST_TTL = 2**32 - 1
"""Milliseconds; what the broker can count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """An exchange that the transport declares."""

    name: str = field(metadata=about(Text(), "The name."))
    type: ExchangeType | str = setting("topic", Text(), "`topic`, `direct`, `fanout`, `headers` or a plugin's `x-…`.")
    durable: bool = setting(True, Flag(), "Whether the exchange survives a restart of the broker.")

    def __post_init__(self) -> None:
        check_name("an exchange", self.name)
        if self.type not in _EXCHANGE_TYPES and not self.type.startswith("x-"):
            raise ConfigurationError(
                f"exchange {self.name!r}: type is {', '.join(_EXCHANGE_TYPES)} or a plugin's x-…, not {self.type!r}"
            )

    @property
    def label(self) -> str:
        return f"exchange {self.name!r}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """What a queue receives from an exchange."""

    exchange: str = field(metadata=about(Text(), "The exchange."))
    routing_key: str = setting("", Text(), "The routing key, or a pattern of a topic exchange.")

    def __post_init__(self) -> None:
        if self.exchange == "":
            raise ConfigurationError("nothing is bound to the default exchange: it knows every queue by its name")
        check_name("a binding's exchange", self.exchange)
        if not fits(self.routing_key) or not self.routing_key.isprintable():
            raise ConfigurationError(f"the binding to {self.exchange!r} has a routing key that cannot be sent")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """Where a queue's expired and rejected messages go: an exchange, and a queue bound to it by its own name."""

    exchange: str = field(
        metadata=about(
            Text(), "The dead-letter exchange. Empty: the default exchange, which knows queues by their names."
        )
    )
    queue: str = field(metadata=about(Text(), "The queue that is bound to it."))

    def __post_init__(self) -> None:
        if self.exchange != "":
            check_name("a dead-letter exchange", self.exchange)
        check_name("a dead-letter queue", self.queue)


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """A durable queue that the transport declares."""

    name: str = field(metadata=about(Text(), "The name."))
    type: QueueType = setting("quorum", Choice.of(QueueType), "The type.")
    bindings: Sequence[Binding] = listed(Binding)
    max_length: int | None = setting(
        None,
        Whole("messages"),
        "Messages in the queue, at most. A full queue rejects further ones, unless `overflow` says otherwise. Not set: "
        "no limit.",
    )
    message_ttl: Duration | None = setting(
        None,
        Span(minimum="1ms", maximum="49 days"),
        "How long a message may stay in the queue; on quorum queues since RabbitMQ 3.10. Not set: forever.",
    )
    dead_letter: DeadLetter | None = maybe(DeadLetter)
    overflow: Overflow | None = setting(
        None,
        Choice.of(Overflow),
        "What a full queue does. `drop-head` discards messages that were confirmed. Not set: `reject-publish`.",
    )
    delivery_limit: int | None = setting(
        None,
        Whole("deliveries"),
        "Deliveries without an acknowledgement before the broker dead-letters a message; quorum queues with "
        "`dead_letter` only. Not set: the broker's own limit, none up to RabbitMQ 3 and 20 from RabbitMQ 4 on.",
    )
    arguments: Mapping[str, Argument] = field(
        default_factory=dict[str, Argument], metadata=about(Pairs(texts=False), "Further arguments of the declaration.")
    )

    def __post_init__(self) -> None:
        check_name("a queue", self.name)
        if self.type not in ("quorum", "classic"):
            raise ConfigurationError(f'queue {self.name!r}: type is "quorum" or "classic", not {self.type!r}')
        if self.max_length is not None and (isinstance(self.max_length, bool) or self.max_length < 1):
            raise ConfigurationError(
                f"queue {self.name!r}: max_length is {self.max_length}; at least 1, or leave it out"
            )
        self._check_overflow()
        self._check_limit()
        self._check_time()
        self._check_arguments()
        object.__setattr__(self, "bindings", tuple(self.bindings))
        object.__setattr__(self, "arguments", MappingProxyType(dict(self.arguments)))

    def _check_overflow(self) -> None:
        if self.overflow not in (None, "reject-publish", "reject-publish-dlx", "drop-head"):
            raise ConfigurationError(
                f'queue {self.name!r}: overflow is "reject-publish", "reject-publish-dlx" or "drop-head", '
                f"not {self.overflow!r}"
            )
        if self.type == "quorum" and self.overflow == "reject-publish-dlx":
            raise ConfigurationError(
                f"queue {self.name!r}: quorum queues know reject-publish and drop-head only; "
                'choose one of them or type="classic"'
            )

    def _check_limit(self) -> None:
        if self.delivery_limit is None:
            return
        if isinstance(self.delivery_limit, bool) or self.delivery_limit < 1:
            raise ConfigurationError(
                f"queue {self.name!r}: delivery_limit is {self.delivery_limit}; at least 1, or leave it out"
            )
        if self.type != "quorum":
            raise ConfigurationError(f"queue {self.name!r}: only quorum queues know a delivery_limit; leave it out")
        if self.dead_letter is None:
            raise ConfigurationError(
                f"queue {self.name!r}: a delivery_limit without dead_letter drops messages; set dead_letter, too"
            )

    def _check_time(self) -> None:
        if self.message_ttl is not None:
            milliseconds = round(seconds(self.message_ttl, field=f"queue {self.name!r}: message_ttl") * 1000)
            if not 1 <= milliseconds <= _LONGEST_TTL:
                raise ConfigurationError(
                    f"queue {self.name!r}: message_ttl is {self.message_ttl}; from 1ms to 49 days, or leave it out"
                )

    def _check_arguments(self) -> None:
        for name in self.arguments:
            if name in _OWN_ARGUMENTS:
                raise ConfigurationError(
                    f"queue {self.name!r}: set {_OWN_ARGUMENTS[name]} instead of the argument {name}"
                )
            if self.type == "quorum" and name in _NOT_FOR_QUORUM:
                raise ConfigurationError(f"queue {self.name!r}: quorum queues do not know {name}; leave it out")

    @property
    def label(self) -> str:
        return f"queue {self.name!r}"

    def all_arguments(self) -> dict[str, Argument]:
        """What the broker is told."""
        told: dict[str, Argument] = {"x-queue-type": self.type, **self.arguments}
        if self.max_length is not None:
            told["x-max-length"] = self.max_length
        if self.overflow is not None:
            told["x-overflow"] = self.overflow
        elif self.max_length is not None or "x-max-length-bytes" in self.arguments:
            told["x-overflow"] = "reject-publish"
        if self.delivery_limit is not None:
            told["x-delivery-limit"] = self.delivery_limit
        if self.message_ttl is not None:
            told["x-message-ttl"] = round(seconds(self.message_ttl) * 1000)
        if self.dead_letter is not None:
            told["x-dead-letter-exchange"] = self.dead_letter.exchange
            told["x-dead-letter-routing-key"] = self.dead_letter.queue
        return told


def work_queue(name: str) -> Queue:
    """The queue of a consumer that names no more than its queue.

    A consumer isolates what was delivered twice without an answer. What it never gets to see, because its client or its
    machine dies on receiving it, the broker itself dead-letters in the end, at least once.
    """
    return Queue(
        name=name,
        delivery_limit=DELIVERY_LIMIT,
        dead_letter=DeadLetter(exchange="", queue=dead_letter_queue(name)),
        overflow="reject-publish",
        arguments={"x-dead-letter-strategy": "at-least-once"},
    )


def same_queue_otherwise(queue: Queue) -> Queue | None:
    """A queue that is declared by its name alone, by a relay or as a consumer's work queue, may exist as either."""
    plain, guarded = Queue(name=queue.name), work_queue(queue.name)
    if queue.all_arguments() == plain.all_arguments():
        return guarded
    return plain if queue.all_arguments() == guarded.all_arguments() else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bind:
    """One binding of one queue, ready to be declared."""

    queue: str
    exchange: str
    routing_key: str

    @property
    def label(self) -> str:
        return f"the binding of queue {self.queue!r} to exchange {self.exchange!r} by {self.routing_key!r}"


Declaration = Exchange | Queue | Bind


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """Everything to be declared, checked as a whole."""

    exchanges: Sequence[Exchange] = ()
    queues: Sequence[Queue] = ()

    def __post_init__(self) -> None:
        _check_unique("exchange", [exchange.name for exchange in self.exchanges])
        _check_unique("queue", [queue.name for queue in self.queues])

    def declarations(self) -> list[Declaration]:
        """In an order in which each finds what it needs: exchanges, queues, bindings.

        A dead-letter exchange or queue that is not listed itself is a durable direct exchange, and a queue of the same
        type as the one whose dead letters it takes.
        """
        exchanges = {exchange.name: exchange for exchange in self.exchanges}
        queues = {queue.name: queue for queue in self.queues}
        binds = [
            Bind(queue=queue.name, exchange=binding.exchange, routing_key=binding.routing_key)
            for queue in self.queues
            for binding in queue.bindings
        ]
        for queue in self.queues:
            if (dead := queue.dead_letter) is not None:
                queues.setdefault(dead.queue, Queue(name=dead.queue, type=queue.type))
                if dead.exchange != "":
                    exchanges.setdefault(dead.exchange, Exchange(name=dead.exchange, type="direct"))
                    binds.append(Bind(queue=dead.queue, exchange=dead.exchange, routing_key=dead.queue))
        return [*exchanges.values(), *queues.values(), *dict.fromkeys(binds)]


def _check_unique(what: str, names: Sequence[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise ConfigurationError(f"{what} {name!r} is listed twice; keep one of them")
