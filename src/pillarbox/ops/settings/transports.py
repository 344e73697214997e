"""The sections [transports], [destinations] and [[routes]]."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pillarbox import plugins
from pillarbox.core.settings import Choice, Flag, Span, Text, Whole, about, listed, maybe, setting
from pillarbox.ops.settings.kinds import Import, Pairs, Rate, Texts, Url

TRANSPORTS = "amqp://…, stdout:// or handlers:MODULE:OBJECT"


@dataclass(frozen=True, slots=True, kw_only=True)
class BindingSettings:
    """What a queue receives from an exchange."""

    exchange: str = field(metadata=about(Text(), "The exchange."))
    routing_key: str = setting("", Text(), "The routing key, or a pattern of a topic exchange.")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterSettings:
    """Where a queue's expired and rejected messages go."""

    exchange: str = field(metadata=about(Text(), "The dead-letter exchange."))
    queue: str = field(metadata=about(Text(), "The queue that is bound to it."))


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeSettings:
    """An exchange that the relay declares."""

    name: str = field(metadata=about(Text(), "The name."))
    type: str = setting("topic", Text(), "`topic`, `direct`, `fanout`, `headers` or a plugin's `x-…`.")
    durable: bool = setting(True, Flag(), "Whether the exchange survives a restart of the broker.")


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSettings:
    """A durable queue that the relay declares."""

    name: str = field(metadata=about(Text(), "The name."))
    type: Literal["quorum", "classic"] = setting("quorum", Choice(("quorum", "classic")), "The type.")
    max_length: int | None = setting(
        None, Whole("messages"), "Messages in the queue at most; a full queue rejects further ones. Not set: no limit."
    )
    message_ttl: str | None = setting(None, Span(), "How long a message may stay in the queue. Not set: forever.")
    delivery_limit: int | None = setting(
        None,
        Whole("deliveries"),
        "Deliveries without an acknowledgement before the broker dead-letters a message. Needs `dead_letter`. Not set: "
        "the broker's own limit.",
    )
    overflow: Literal["reject-publish", "reject-publish-dlx", "drop-head"] | None = setting(
        None,
        Choice(("reject-publish", "reject-publish-dlx", "drop-head")),
        "What a full queue does. `drop-head` discards messages that were confirmed. Not set: `reject-publish`.",
    )
    arguments: Mapping[str, Any] | None = setting(None, Pairs(texts=False), "Further arguments of the declaration.")
    bindings: tuple[BindingSettings, ...] = listed(BindingSettings)
    dead_letter: DeadLetterSettings | None = maybe(DeadLetterSettings)


@dataclass(frozen=True, slots=True, kw_only=True)
class TransportSettings:
    """How events leave: `url` says which transport it is, or `import` names handlers of the application."""

    url: str | None = setting(
        None,
        Url("transport", plugins.TRANSPORTS, TRANSPORTS),
        "`amqp://user:password@host:port/vhost` (`amqps://`), `stdout://` or `memory://`.",
        secret=True,
        formerly={
            "spring.rabbitmq.host": "part of the URL",
            "spring.rabbitmq.port": "part of the URL",
            "event_bus": "",
        },
    )
    import_: str | None = setting(None, Import(), "The application's `Handlers`.")
    window: int = setting(
        1000, Whole("messages"), "Messages sent and not yet confirmed, at most.", only_for=("rabbitmq",)
    )
    declare: bool = setting(
        True, Flag(), "Declare exchanges and queues on every new connection.", only_for=("rabbitmq",)
    )
    connect_timeout: str = setting("10s", Span(), "How long connecting may take.", only_for=("rabbitmq",))
    heartbeat: str = setting(
        "30s", Span(zero="never"), "How soon a dead, idle connection is detected.", only_for=("rabbitmq",)
    )
    options: Mapping[str, Any] | None = setting(
        None, Pairs(texts=False), "Options of a transport that another distribution registers."
    )
    exchanges: tuple[ExchangeSettings, ...] = listed(ExchangeSettings)
    queues: tuple[QueueSettings, ...] = listed(QueueSettings)

    @property
    def kind(self) -> str:
        """`rabbitmq`, `handlers`, `stdout`, `memory` or an adapter's own; '' if neither `url` nor `import` is set."""
        if self.import_ is not None:
            return "handlers"
        return "" if self.url is None else plugins.kind_of_transport(plugins.scheme_of(self.url))


@dataclass(frozen=True, slots=True, kw_only=True)
class DestinationSettings:
    """An address behind a transport, and the body of a message there."""

    transport: str | None = setting(None, Text(), "The transport. Not needed where there is only one.")
    exchange: str = setting(
        "",
        Text(),
        "The exchange. Empty: the default exchange, whose routing key is a queue's name.",
        only_for=("rabbitmq",),
    )
    routing_key: str = setting(
        "{event_type}",
        Text(),
        "The routing key, which may contain `{event_type}`, `{aggregate_type}`, `{aggregate_id}` and `{key}`.",
        only_for=("rabbitmq",),
    )
    handler: str | None = setting(
        None, Text(), "The handler's name. Not set: the name of the destination.", only_for=("handlers",)
    )
    options: Mapping[str, Any] | None = setting(
        None, Pairs(texts=False), "Options of a destination behind such a transport."
    )
    body: Literal["payload", "envelope", "cloudevents"] = setting(
        "payload",
        Choice(("payload", "envelope", "cloudevents")),
        "What is sent: the recorded bytes, a JSON object around them, or a CloudEvent.",
    )
    fields: Any = setting(
        ("event_id", "event_type", "aggregate_type", "aggregate_id", "payload"),
        Pairs(or_names=True),
        "Fields of the event, or name in the body = field.",
        only_for=("envelope",),
    )
    from_headers: Mapping[str, str] | None = setting(
        None, Pairs(), "Name in the body = header with the value.", only_for=("envelope",)
    )
    constants: Mapping[str, Any] | None = setting(
        None, Pairs(texts=False), "Name in the body = value.", only_for=("envelope",)
    )
    numeric_id: bool = setting(False, Flag(), "Send the aggregate id as a JSON number.", only_for=("envelope",))
    source: str = setting("pillarbox", Text(), "The source, a URI reference.", only_for=("cloudevents",))
    rate_limit: str | None = setting(
        None, Rate(), "Messages over all relays at most, as in `500/s`, `30/m`, `1000/h`. Not set: no limit."
    )
    ordering: Literal["strict", "pipelined"] = setting(
        "strict",
        Choice(("strict", "pipelined")),
        "`strict`: the next event of a key is sent after the one before was confirmed. `pipelined`: several events of "
        "a key are sent in one batch, in order; one that the broker rejects arrives after those behind it.",
        only_for=("rabbitmq",),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteSettings:
    """Where events go. The first route that matches wins; several destinations get a copy each."""

    event_type: str = setting("*", Text(), "A pattern of event types: `*`, `?`, `[…]`.")
    aggregate_type: str = setting("*", Text(), "A pattern of aggregate types.")
    to: tuple[str, ...] = field(metadata=about(Texts(), "The destinations."))
