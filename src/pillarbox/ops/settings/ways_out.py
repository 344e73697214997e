"""Every setting of what lies beyond the relay: transports, what shall exist on a broker, destinations, routes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pillarbox import plugins
from pillarbox.ops.settings.describing import key, listed, maybe
from pillarbox.ops.settings.kinds import Choice, Import, Pairs, Rate, Span, Text, Texts, Truth, Url, Whole

TRANSPORTS = "amqp://…, stdout:// or handlers:MODULE:OBJECT"


@dataclass(frozen=True, slots=True, kw_only=True)
class BindingSettings:
    """What a queue receives from an exchange."""

    exchange: str = key(Text(), "the exchange")
    routing_key: str = key(Text(), "the routing key, or a pattern of a topic exchange", default="")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterSettings:
    """Where a queue's expired and refused messages go."""

    exchange: str = key(Text(), "the dead-letter exchange")
    queue: str = key(Text(), "the queue behind it")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeSettings:
    """An exchange that shall exist."""

    name: str = key(Text(), "its name")
    type: str = key(Text(), "`topic`, `direct`, `fanout`, `headers` or a plugin's `x-…`", default="topic")
    durable: bool = key(Truth(), "survives a restart of the broker", default=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSettings:
    """A durable queue that shall exist."""

    name: str = key(Text(), "its name")
    type: Literal["quorum", "classic"] = key(Choice(("quorum", "classic")), "its type", default="quorum")
    max_length: int | None = key(Whole(1), "the most messages in it; a full queue refuses", default=None)
    message_ttl: str | None = key(Span(), "how long a message may wait in it", default=None)
    delivery_limit: int | None = key(
        Whole(1),
        "deliveries without an answer before a message is dead-lettered; needs `dead_letter`",
        default=None,
    )
    overflow: Literal["reject-publish", "reject-publish-dlx", "drop-head"] | None = key(
        Choice(("reject-publish", "reject-publish-dlx", "drop-head")),
        "what a full queue does; `drop-head` throws away messages that were confirmed",
        default=None,
    )
    arguments: Mapping[str, Any] | None = key(Pairs(texts=False), "further arguments, passed on", default=None)
    bindings: tuple[BindingSettings, ...] = listed(BindingSettings)
    dead_letter: DeadLetterSettings | None = maybe(DeadLetterSettings)


@dataclass(frozen=True, slots=True, kw_only=True)
class TransportSettings:
    """A way out: `url` says what it is, or `import` names handlers of the application."""

    url: str | None = key(
        Url("transport", plugins.TRANSPORTS, TRANSPORTS),
        "`amqp://user:password@host:port/vhost` (`amqps://`), `stdout://`, `memory://`",
        default=None,
        secret=True,
        formerly={
            "spring.rabbitmq.host": "part of the URL",
            "spring.rabbitmq.port": "part of the URL",
            "event_bus": "",
        },
    )
    import_: str | None = key(Import(), "the application's `Handlers`", default=None)
    window: int = key(Whole(1), "the most messages unconfirmed at once", default=1000, only_for=("rabbitmq",))
    declare: bool = key(
        Truth(), "declare exchanges and queues on every new connection", default=True, only_for=("rabbitmq",)
    )
    connect_timeout: str = key(Span(), "how long connecting may take", default="10s", only_for=("rabbitmq",))
    heartbeat: str = key(
        Span(), "how soon a dead, idle connection is noticed; `0s` = never", default="30s", only_for=("rabbitmq",)
    )
    options: Mapping[str, Any] | None = key(
        Pairs(texts=False), "options of a transport that another distribution registers", default=None
    )
    exchanges: tuple[ExchangeSettings, ...] = listed(ExchangeSettings)
    queues: tuple[QueueSettings, ...] = listed(QueueSettings)

    @property
    def kind(self) -> str:
        """`rabbitmq`, `handlers`, `stdout`, `memory` or an adapter's own; '' where neither was said."""
        if self.import_ is not None:
            return "handlers"
        return "" if self.url is None else plugins.kind_of_transport(plugins.scheme_of(self.url))


@dataclass(frozen=True, slots=True, kw_only=True)
class DestinationSettings:
    """A named place behind a transport, and what a message looks like there."""

    transport: str | None = key(Text(), "the transport; may be left out where there is only one", default=None)
    exchange: str = key(
        Text(), "the exchange; without one, the routing key is a queue's name", default="", only_for=("rabbitmq",)
    )
    routing_key: str = key(
        Text(),
        "may contain `{event_type}`, `{aggregate_type}`, `{aggregate_id}`, `{key}`",
        default="{event_type}",
        only_for=("rabbitmq",),
    )
    handler: str | None = key(
        Text(), "the handler's name; that of the destination where it is left out", default=None, only_for=("handlers",)
    )
    options: Mapping[str, Any] | None = key(
        Pairs(texts=False), "options of a destination behind such a transport", default=None
    )
    body: Literal["payload", "envelope", "cloudevents"] = key(
        Choice(("payload", "envelope", "cloudevents")),
        "what is sent: the recorded bytes, JSON around them, or a CloudEvent",
        default="payload",
    )
    fields: Any = key(
        Pairs(or_names=True),
        "fields of the event, or name in the body = field",
        default=("event_id", "event_type", "aggregate_type", "aggregate_id", "payload"),
        only_for=("envelope",),
    )
    from_headers: Mapping[str, str] | None = key(
        Pairs(), "name in the body = header it is taken from", default=None, only_for=("envelope",)
    )
    constants: Mapping[str, Any] | None = key(
        Pairs(texts=False), "name in the body = value", default=None, only_for=("envelope",)
    )
    numeric_id: bool = key(Truth(), "the aggregate id as a JSON number", default=False, only_for=("envelope",))
    source: str = key(Text(), "who speaks: a URI reference", default="pillarbox", only_for=("cloudevents",))
    rate_limit: str | None = key(Rate(), "the most messages over all relays: `500/s`, `30/m`, `1000/h`", default=None)
    ordering: Literal["strict", "pipelined"] = key(
        Choice(("strict", "pipelined")),
        "`strict`: the next event of a key is sent once the one before was confirmed; `pipelined`: several events of a "
        "key are sent in one batch, in order, and one that the broker refuses arrives after those behind it",
        default="strict",
        only_for=("rabbitmq",),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteSettings:
    """Where events go: the first route that fits wins, several destinations get a copy each."""

    event_type: str = key(Text(), "a pattern: `*`, `?`, `[…]`", default="*")
    aggregate_type: str = key(Text(), "likewise", default="*")
    to: tuple[str, ...] = key(Texts(), "destinations")
