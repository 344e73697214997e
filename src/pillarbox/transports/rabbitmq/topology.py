"""The topology of a broker as values: exchanges, queues, bindings, dead letters. No driver is needed here.

Everything is durable unless configured otherwise, and queues are quorum queues unless configured otherwise: safer, and
twice as fast to publish to. Nothing drops a confirmed message unless `overflow` says so: a limit on length implies
`reject-publish`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, get_args

from pillarbox.admin.broker_dead_letters import dead_letter_queue
from pillarbox.core.clock import Duration, seconds
from pillarbox.core.errors import ConfigurationError
from pillarbox.settings import Choice, Flag, Pairs, Span, Text, Whole, about, check_settings, listed, maybe, setting
from pillarbox.transports.address_template import NOT_IN_NAMES

ExchangeType = Literal["direct", "fanout", "headers", "topic"]
QueueType = Literal["quorum", "classic"]
Overflow = Literal["reject-publish", "reject-publish-dlx", "drop-head"]
Argument = str | int | bool

_EXCHANGE_TYPES = get_args(ExchangeType)
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
RETRY_DELAYS: tuple[Duration, ...] = ("1s", "5s", "30s", "3min", "15min", "1h")
_UNITS = ((3_600_000, "h"), (60_000, "min"), (1000, "s"), (1, "ms"))
DELIVERY_LIMIT = 20
"""As RabbitMQ 4 sets it for every quorum queue."""
MAX_NAME_BYTES = 255
"""Bytes of a name, the limit of AMQP."""


def fits(text: str) -> bool:
    """Whether it can be sent as an AMQP short string."""
    if text.isascii():
        return len(text) <= MAX_NAME_BYTES
    try:
        return len(text.encode()) <= MAX_NAME_BYTES
    except UnicodeEncodeError:
        return False


def check_name(what: str, name: object) -> None:
    """Raise ConfigurationError unless it is a non-empty name of at most 255 bytes without control characters."""
    if not isinstance(name, str) or not name:
        raise ConfigurationError(f"{what} must have a name, not {name!r}")
    if NOT_IN_NAMES.search(name):
        raise ConfigurationError(f"{what} {name!r} has a control character or a lone surrogate; remove it")
    if not fits(name):
        raise ConfigurationError(f"{what} {name[:40]!r}… is longer than {MAX_NAME_BYTES} bytes; choose a shorter name")


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """An exchange that the transport declares."""

    name: str = field(metadata=about(Text(), "The name of the exchange."))
    type: ExchangeType | str = setting("topic", Text(), "`topic`, `direct`, `fanout`, `headers` or a plugin's `x-…`.")
    durable: bool = setting(True, Flag(), "Whether the exchange survives a restart of the broker.")

    def __post_init__(self) -> None:
        check_name("an exchange", self.name)
        check_settings(self)
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
        check_settings(self)
        if self.exchange == "":
            raise ConfigurationError("nothing is bound to the default exchange: it knows every queue by its name")
        check_name("a binding's exchange", self.exchange)
        if not fits(self.routing_key) or NOT_IN_NAMES.search(self.routing_key):
            raise ConfigurationError(f"the binding to {self.exchange!r} has a routing key that cannot be sent")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterTarget:
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
    dead_letter: DeadLetterTarget | None = maybe(DeadLetterTarget)
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
        check_settings(self)
        self._check_type()
        self._check_arguments()
        object.__setattr__(self, "bindings", tuple(self.bindings))
        object.__setattr__(self, "arguments", MappingProxyType(dict(self.arguments)))

    def _check_type(self) -> None:
        if self.type == "quorum" and self.overflow == "reject-publish-dlx":
            raise ConfigurationError(
                f"{self.label}: quorum queues support overflow = reject-publish and drop-head only; "
                'choose one of them or type = "classic"'
            )
        if self.delivery_limit is None:
            return
        if self.type != "quorum":
            raise ConfigurationError(f"{self.label}: only quorum queues support delivery_limit; leave it out")
        if self.dead_letter is None:
            raise ConfigurationError(
                f"{self.label}: a delivery_limit without dead_letter drops messages; set dead_letter, too"
            )

    def _check_arguments(self) -> None:
        for name in self.arguments:
            if name in _OWN_ARGUMENTS:
                raise ConfigurationError(f"{self.label}: set {_OWN_ARGUMENTS[name]} instead of the argument {name}")
            if self.type == "quorum" and name in _NOT_FOR_QUORUM:
                raise ConfigurationError(f"{self.label}: quorum queues do not support {name}; leave it out")

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

    A consumer quarantines a message that was delivered twice without acknowledgement. If the client or machine of the
    consumer crashes before it sees the message, the broker itself dead-letters it at its delivery limit, at least once.
    """
    return Queue(
        name=name,
        delivery_limit=DELIVERY_LIMIT,
        dead_letter=DeadLetterTarget(exchange="", queue=dead_letter_queue(name)),
        overflow="reject-publish",
        arguments={"x-dead-letter-strategy": "at-least-once"},
    )


class ExactQueue(Queue):
    """A queue whose arguments a consumer relies on: used only if it exists exactly as declared."""

    __slots__ = ()


def alternative_queue(queue: Queue) -> Queue | None:
    """The other form in which a queue may exist that is declared by its name alone: a relay's, or a consumer's."""
    plain, guarded = Queue(name=queue.name), work_queue(queue.name)
    if queue.all_arguments() == plain.all_arguments():
        return guarded
    return plain if queue.all_arguments() == guarded.all_arguments() else None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueBinding:
    """One binding of one queue, to declare."""

    queue: str
    exchange: str
    routing_key: str

    @property
    def label(self) -> str:
        return f"the binding of queue {self.queue!r} to exchange {self.exchange!r} by {self.routing_key!r}"


Declaration = Exchange | Queue | QueueBinding


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """Everything to declare, checked as a whole."""

    exchanges: Sequence[Exchange] = ()
    queues: Sequence[Queue] = ()

    def __post_init__(self) -> None:
        for items in (self.exchanges, self.queues):
            counts = Counter(item.label for item in items)
            if twice := next((label for label, count in counts.items() if count > 1), None):
                raise ConfigurationError(f"{twice} is listed twice; keep one of them")

    def declarations(self) -> list[Declaration]:
        """In the order of their dependencies: exchanges, queues, bindings.

        A dead-letter exchange or queue that is not listed itself is a durable direct exchange, and a queue of the same
        type as the one whose dead letters it takes.
        """
        exchanges = {exchange.name: exchange for exchange in self.exchanges}
        queues = {queue.name: queue for queue in self.queues}
        binds = [
            QueueBinding(queue=queue.name, exchange=binding.exchange, routing_key=binding.routing_key)
            for queue in self.queues
            for binding in queue.bindings
        ]
        for queue in self.queues:
            if (dead := queue.dead_letter) is not None:
                queues.setdefault(dead.queue, Queue(name=dead.queue, type=queue.type))
                if dead.exchange != "":
                    exchanges.setdefault(dead.exchange, Exchange(name=dead.exchange, type="direct"))
                    binds.append(QueueBinding(queue=dead.queue, exchange=dead.exchange, routing_key=dead.queue))
        return [*exchanges.values(), *queues.values(), *dict.fromkeys(binds)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerQueues:
    """The queues of a consumer: the work queue, one queue per retry delay, quarantine and dead letters.

    All messages of a retry queue have the same delay, so that none blocks a shorter one. When it has passed, the broker
    itself returns the message to the work queue, without a plugin and whatever process restarts meanwhile. All of them
    are durable quorum queues, and the way back is `at-least-once`: the broker deletes a message from the one queue when
    the other has it.
    """

    work: Queue
    retry_delays: tuple[int, ...]
    """Milliseconds, ascending."""

    @classmethod
    def around(cls, work: str | Queue, retry_delays: Sequence[Duration]) -> ConsumerQueues:
        """Raises ConfigurationError for a delay below 1ms, and for names that grow too long."""
        queue = work_queue(work) if isinstance(work, str) else work
        found = sorted({round(seconds(delay, field="retry_delays") * 1000) for delay in retry_delays})
        if not found or found[0] < 1:
            raise ConfigurationError("retry_delays: give at least one, and none below 1ms: retries would spin")
        queues = cls(work=queue, retry_delays=tuple(found))
        queues.auxiliary()  # checks them
        return queues

    @property
    def quarantine(self) -> str:
        return f"{self.work.name}.quarantine"

    @property
    def dead(self) -> str:
        dead = self.work.dead_letter
        return dead_letter_queue(self.work.name) if dead is None else dead.queue

    def retry_queue(self, delay: float) -> str:
        """The name of the queue with the shortest delay that is long enough; with the longest, if none is."""
        fitting = (each for each in self.retry_delays if each >= delay * 1000)
        return self._retry_name(next(fitting, self.retry_delays[-1]))

    def declarations(self, exchanges: Sequence[Exchange]) -> list[Declaration]:
        """All of it, the work queue first."""
        topology = Topology(exchanges=exchanges, queues=[self.work]).declarations()
        named = {item.name for item in topology if isinstance(item, Queue)}
        return [*topology, *(queue for queue in self.auxiliary() if queue.name not in named)]

    def auxiliary(self) -> list[Queue]:
        """Everything but the work queue."""
        retries = (
            ExactQueue(
                name=self._retry_name(delay),
                message_ttl=delay / 1000,
                dead_letter=DeadLetterTarget(exchange="", queue=self.work.name),
                overflow="reject-publish",  # the broker requires it for the next line
                arguments={"x-dead-letter-strategy": "at-least-once"},
            )
            for delay in self.retry_delays
        )
        return [Queue(name=self.dead), ExactQueue(name=self.quarantine), *retries]

    def _retry_name(self, delay: int) -> str:
        size, unit = next((size, unit) for size, unit in _UNITS if delay % size == 0)
        return f"{self.work.name}.wait.{delay // size}{unit}"
