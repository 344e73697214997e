"""The sections [transports], [destinations] and [[routes]]."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pillarbox import plugins
from pillarbox.ops.settings.kinds import Import, Url
from pillarbox.ops.settings.tables import same_as
from pillarbox.relay.envelope import BodyName, CloudEvents, Envelope
from pillarbox.relay.routing import DestinationOptions, Ordering
from pillarbox.settings import Pairs, Text, listed, setting
from pillarbox.transports.plugins import HandlerPlugin
from pillarbox.transports.rabbitmq.topology import Exchange, Queue, RabbitMQAddress, RabbitMQOptions

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
    window: int = same_as(RabbitMQOptions, "window", only_for=("rabbitmq",))
    declare: bool = same_as(RabbitMQOptions, "declare", only_for=("rabbitmq",))
    connect_timeout: str = same_as(RabbitMQOptions, "connect_timeout", only_for=("rabbitmq",))
    heartbeat: str = same_as(RabbitMQOptions, "heartbeat", only_for=("rabbitmq",))
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
    body: BodyName = same_as(DestinationOptions, "body")
    fields: Any = same_as(Envelope, "fields", only_for=("envelope",))
    from_headers: Mapping[str, str] | None = same_as(Envelope, "from_headers", only_for=("envelope",))
    constants: Mapping[str, Any] | None = same_as(Envelope, "constants", only_for=("envelope",))
    numeric_id: bool = same_as(Envelope, "numeric_id", only_for=("envelope",))
    source: str = same_as(CloudEvents, "source", only_for=("cloudevents",))
    rate_limit: str | None = same_as(DestinationOptions, "rate_limit")
    ordering: Ordering = same_as(DestinationOptions, "ordering")
