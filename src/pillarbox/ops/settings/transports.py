"""The sections [transports], [destinations] and [[routes]]."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pillarbox import plugins
from pillarbox.ops.settings.kinds import Import, Rate, Url
from pillarbox.ops.settings.tables import same_as
from pillarbox.relay.envelope import CloudEvents, Envelope
from pillarbox.settings import Choice, Flag, Pairs, Span, Text, Whole, listed, setting
from pillarbox.transports.plugins import HandlerPlugin
from pillarbox.transports.rabbitmq.topology import Exchange, Queue, RabbitMQAddress

TRANSPORTS = "amqp://…, stdout:// or handlers:MODULE:OBJECT"


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
    exchanges: tuple[Exchange, ...] = listed(Exchange)
    queues: tuple[Queue, ...] = listed(Queue)

    @property
    def plugin(self) -> plugins.TransportPlugin:
        """The adapter of `url` or `import`. Raises ConfigurationError if no adapter has the scheme."""
        if self.import_ is not None:
            return HandlerPlugin()
        return plugins.transport_plugin(plugins.scheme_of(self.url or ""))

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
    exchange: str = same_as(RabbitMQAddress, "exchange", only_for=("rabbitmq",))
    routing_key: str = same_as(RabbitMQAddress, "routing_key", only_for=("rabbitmq",))
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
    fields: Any = same_as(Envelope, "fields", only_for=("envelope",))
    from_headers: Mapping[str, str] | None = same_as(Envelope, "from_headers", only_for=("envelope",))
    constants: Mapping[str, Any] | None = same_as(Envelope, "constants", only_for=("envelope",))
    numeric_id: bool = same_as(Envelope, "numeric_id", only_for=("envelope",))
    source: str = same_as(CloudEvents, "source", only_for=("cloudevents",))
    rate_limit: str | None = setting(
        None, Rate(), "Messages over all relays at most, as in `500/s`, `30/m`, `1000/h`. Not set: no limit."
    )
    ordering: Literal["strict", "pipelined"] = setting(
        "strict",
        Choice(("strict", "pipelined")),
        "`strict`: the next event of a key is sent after the one before was confirmed. `pipelined`: several events of "
        "a key are sent in one batch, in order; one that the broker rejects arrives after those behind it. Of our "
        "transports, only RabbitMQ supports `pipelined`.",
    )
