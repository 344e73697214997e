"""The topology of a broker as values: addresses, exchanges, queues, bindings, dead letters. No driver is needed here.

Everything is durable unless configured otherwise, and queues are quorum queues unless configured otherwise: safer, and
twice as fast to publish to. Nothing drops a confirmed message unless `overflow` says so: a limit on length implies
`reject-publish`.

An address is checked when it is made. What only a message can get wrong (a value it lacks, a routing key that grows too
long) is an error of that message.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from string import Formatter
from types import MappingProxyType
from typing import ClassVar, Literal

from pillarbox.admin.broker_dead_letters import dead_letter_queue
from pillarbox.core.clock import Duration, seconds
from pillarbox.core.errors import ConfigurationError, PermanentError
from pillarbox.core.message import Message
from pillarbox.core.transport import Address
from pillarbox.settings import Choice, Flag, Pairs, Span, Text, Whole, about, check_settings, listed, maybe, setting

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
"""As RabbitMQ 4 sets it for every quorum queue."""
_LONGEST_TTL = 2**32 - 1
"""Milliseconds: the largest value of the broker."""
LONGEST = 255
"""Bytes of a name, the limit of AMQP."""
PLACEHOLDERS = ("event_type", "aggregate_type", "aggregate_id", "key")


def fits(text: str) -> bool:
    """Whether it can be sent as an AMQP short string."""
    if text.isascii():
        return len(text) <= LONGEST
    try:
        return len(text.encode()) <= LONGEST
    except UnicodeEncodeError:
        return False


def check_name(what: str, name: object) -> None:
    """Raise ConfigurationError unless it is a printable, non-empty name of at most 255 bytes."""
    if not isinstance(name, str) or not name:
        raise ConfigurationError(f"{what} must have a name, not {name!r}")
    if not name.isprintable():
        raise ConfigurationError(f"{what} {name!r} has a control character or a lone surrogate; remove it")
    if not fits(name):
        raise ConfigurationError(f"{what} {name[:40]!r}… is longer than {LONGEST} bytes; choose a shorter name")


@dataclass(frozen=True, kw_only=True)
class RabbitMQOptions:
    """The settings of a broker besides its URL and its topology."""

    python_name: ClassVar[str] = "RabbitMQTransport"

    window: int = setting(1000, Whole("messages"), "Messages sent and not yet confirmed, at most.")
    declare: bool = setting(True, Flag(), "Declare exchanges and queues on every new connection.")
    connect_timeout: Duration = setting("10s", Span(), "How long connecting may take.")
    heartbeat: Duration = setting("30s", Span(zero="never"), "How soon a dead, idle connection is detected.")

    def __post_init__(self) -> None:
        check_settings(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class RabbitMQAddress(Address):
    """An exchange and a routing key; '' is the default exchange, whose routing key is a queue's name."""

    exchange: str = setting(
        "", Text(), "The exchange. Empty: the default exchange, whose routing key is the name of a queue."
    )
    routing_key: str = setting(
        "{event_type}",
        Text(),
        "The routing key, which may contain `{event_type}`, `{aggregate_type}`, `{aggregate_id}` and `{key}`.",
    )
    _parts: tuple[tuple[str, str], ...] = field(init=False, repr=False, compare=False)
    fixed_key: str | None = field(init=False, repr=False, compare=False)
    """The routing key if it is the same for every message."""

    def __post_init__(self) -> None:
        if self.exchange != "":
            check_name("the exchange", self.exchange)
        parts = _parsed(self.routing_key)
        if self.exchange == "" and not parts:
            raise ConfigurationError("the default exchange needs a routing key: the name of a queue")
        object.__setattr__(self, "_parts", parts)
        fixed = None if any(name for _, name in parts) else "".join(literal for literal, _ in parts)
        object.__setattr__(self, "fixed_key", fixed)

    def key_for(self, message: Message) -> str:
        """The routing key of this message. Raises PermanentError if it lacks a value or the key cannot be sent."""
        if self.fixed_key is not None:
            return self.fixed_key
        key = "".join(literal if not name else literal + self._value(message, name) for literal, name in self._parts)
        if not fits(key):
            raise PermanentError(
                f"the routing key of event {message.event_id} cannot be sent: longer than {LONGEST} bytes or not "
                f"UTF-8 ({key[:40]!r}…); shorten {self.routing_key!r} or the values in it"
            )
        return key

    def _value(self, message: Message, name: str) -> str:
        value: str | None = getattr(message, name)
        if value is None:
            raise PermanentError(
                f"the routing key {self.routing_key!r} needs {name}, which event {message.event_id} does not have"
            )
        return value


def _parsed(template: object) -> tuple[tuple[str, str], ...]:
    if not isinstance(template, str):
        raise ConfigurationError(f"a routing key is text, not {type(template).__name__}")
    try:
        found = list(Formatter().parse(template))
    except ValueError as error:
        raise ConfigurationError(f"the routing key {template!r} cannot be read: {error}") from None
    for _, name, form, conversion in found:
        if name is not None and (name not in PLACEHOLDERS or form or conversion):
            raise ConfigurationError(
                f"the routing key {template!r} asks for {{{name}}}; it may ask for "
                + ", ".join(f"{{{known}}}" for known in PLACEHOLDERS)
            )
    literals = "".join(literal for literal, *_ in found)
    if not literals.isprintable() or not fits(literals):
        raise ConfigurationError(f"the routing key {template[:40]!r} has control characters or is too long")
    return tuple((literal, name or "") for literal, name, *_ in found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """An exchange that the transport declares."""

    name: str = field(metadata=about(Text(), "The name of the exchange."))
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

    name: str = field(metadata=about(Text(), "The name of the queue."))
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
        """The arguments of its declaration."""
        arguments: dict[str, Argument] = {"x-queue-type": self.type, **self.arguments}
        if self.max_length is not None:
            arguments["x-max-length"] = self.max_length
        if self.overflow is not None:
            arguments["x-overflow"] = self.overflow
        elif self.max_length is not None or "x-max-length-bytes" in self.arguments:
            arguments["x-overflow"] = "reject-publish"
        if self.delivery_limit is not None:
            arguments["x-delivery-limit"] = self.delivery_limit
        if self.message_ttl is not None:
            arguments["x-message-ttl"] = round(seconds(self.message_ttl) * 1000)
        if self.dead_letter is not None:
            arguments["x-dead-letter-exchange"] = self.dead_letter.exchange
            arguments["x-dead-letter-routing-key"] = self.dead_letter.queue
        return arguments


def work_queue(name: str) -> Queue:
    """The queue of a consumer that is configured by the name of its queue alone.

    A consumer quarantines a message that was delivered twice without an answer. If the consumer's client or machine
    crashes before it sees the message, the broker itself dead-letters it in the end, at least once.
    """
    return Queue(
        name=name,
        delivery_limit=DELIVERY_LIMIT,
        dead_letter=DeadLetter(exchange="", queue=dead_letter_queue(name)),
        overflow="reject-publish",
        arguments={"x-dead-letter-strategy": "at-least-once"},
    )


def same_queue_otherwise(queue: Queue) -> Queue | None:
    """The other form in which a queue may exist that is declared by its name alone: a relay's, or a consumer's."""
    plain, guarded = Queue(name=queue.name), work_queue(queue.name)
    if queue.all_arguments() == plain.all_arguments():
        return guarded
    return plain if queue.all_arguments() == guarded.all_arguments() else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bind:
    """One binding of one queue, to declare."""

    queue: str
    exchange: str
    routing_key: str

    @property
    def label(self) -> str:
        return f"the binding of queue {self.queue!r} to exchange {self.exchange!r} by {self.routing_key!r}"


Declaration = Exchange | Queue | Bind


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """Everything to declare, checked as a whole."""

    exchanges: Sequence[Exchange] = ()
    queues: Sequence[Queue] = ()

    def __post_init__(self) -> None:
        _check_unique("exchange", [exchange.name for exchange in self.exchanges])
        _check_unique("queue", [queue.name for queue in self.queues])

    def declarations(self) -> list[Declaration]:
        """In the order of their dependencies: exchanges, queues, bindings.

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
