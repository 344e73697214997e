"""The sections [transports], [destinations] and [[routes]]."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from pillarbox import plugins, schemes
from pillarbox.ops.settings.kinds import Import, Url
from pillarbox.ops.settings.tables import inlined, inlined_of, same_as
from pillarbox.relay.envelope import BodyName, CloudEvents, CloudEventsMode, Envelope
from pillarbox.relay.routing import DestinationOptions, Ordering
from pillarbox.settings import Pairs, Text, setting
from pillarbox.transports.handlers.plugin import HandlerOptions, HandlerPlugin
from pillarbox.transports.handlers.transport import HandlerOverrides
from pillarbox.transports.kafka.plugin import KafkaAddress, KafkaOptions
from pillarbox.transports.nats.plugin import NatsAddress, NatsOptions
from pillarbox.transports.rabbitmq.plugin import RabbitMQAddress, RabbitMQOptions
from pillarbox.transports.redis.plugin import RedisAddress, RedisOptions
from pillarbox.transports.webhook.plugin import WebhookAddress, WebhookOptions

TRANSPORTS = "amqp://…, kafka://…, nats://…, redis://…, https://…, stdout:// or handlers:MODULE:OBJECT"


@dataclass(frozen=True, slots=True, kw_only=True)
class TransportSettings:
    """A transport: where the relay sends events. `url` selects it, or `import` names handlers of the application."""

    url: str | None = setting(
        None,
        Url("transport", schemes.TRANSPORTS, TRANSPORTS),
        "`amqp://user:password@host:port/vhost` (`amqps://`), `kafka://host:port,host:port` (`kafkas://`), "
        "`nats://user:password@host:port,host:port` (`tls://`), `redis://user:password@host:port/database` "
        "(`rediss://`), `celery://user:password@host:port/vhost` (`celerys://`), `https://host/path` (`http://`), "
        "`stdout://` or `memory://`.",
        secret=True,
        formerly={
            "spring.rabbitmq.host": "part of the URL",
            "spring.rabbitmq.port": "part of the URL",
            "event_bus": "",
        },
    )
    import_: str | None = setting(None, Import(), "The application's `Handlers`.")
    rabbitmq: RabbitMQOptions = inlined(RabbitMQOptions, only_for=("rabbitmq",))
    webhook: WebhookOptions = inlined(WebhookOptions, only_for=("webhook",))
    nats: NatsOptions = inlined(NatsOptions, only_for=("nats",))
    kafka: KafkaOptions = inlined(KafkaOptions, only_for=("kafka",))
    redis: RedisOptions = inlined(RedisOptions, only_for=("redis",))
    handlers: HandlerOverrides = inlined(HandlerOverrides, only_for=("handlers",))
    options: Mapping[str, Any] | None = setting(
        None,
        Pairs(texts=False),
        "Options of a transport without keys of its own: Celery, and those that other distributions register.",
    )

    @property
    def plugin(self) -> plugins.TransportPlugin:
        """The adapter of `url` or `import`. Raises ConfigurationError if no adapter has the scheme."""
        if self.import_ is not None:
            return HandlerPlugin()
        return schemes.transport_plugin(schemes.scheme_of(self.url or ""))

    @property
    def kind(self) -> str:
        """`rabbitmq`, `handlers`, … or an adapter's own; '' if neither `url` nor `import` is set."""
        if self.import_ is not None:
            return "handlers"
        return "" if self.url is None else schemes.kind_of_transport(schemes.scheme_of(self.url))

    @property
    def has_own(self) -> bool:
        """Whether its kind has settings of its own."""
        return self.kind in inlined_of(type(self))

    @property
    def own(self) -> Mapping[str, Any]:
        """The settings of its kind; those of a transport that another distribution registers are `options`."""
        return _own(self, self.kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class DestinationSettings:
    """An address behind a transport, and the body of a message there."""

    transport: str | None = setting(None, Text(), "The transport. Not needed where there is only one.")
    target: str | None = setting(
        None,
        Text(),
        "The queue, topic, subject or stream of that name, on any broker; for webhooks, the path below `url`. Use it "
        "instead of the settings of one kind of transport, so that only `url` changes with the broker.",
    )
    rabbitmq: RabbitMQAddress = inlined(RabbitMQAddress, only_for=("rabbitmq",))
    webhook: WebhookAddress = inlined(WebhookAddress, only_for=("webhook",))
    nats: NatsAddress = inlined(NatsAddress, only_for=("nats",))
    kafka: KafkaAddress = inlined(KafkaAddress, only_for=("kafka",))
    redis: RedisAddress = inlined(RedisAddress, only_for=("redis",))
    handlers: HandlerOptions = inlined(HandlerOptions, only_for=("handlers",))
    options: Mapping[str, Any] | None = setting(
        None, Pairs(texts=False), "Options of a destination behind such a transport."
    )
    body: BodyName = same_as(DestinationOptions, "body")
    fields: Any = same_as(Envelope, "fields", only_for=("envelope",))
    from_headers: Mapping[str, str] | None = same_as(Envelope, "from_headers", only_for=("envelope",))
    constants: Mapping[str, Any] | None = same_as(Envelope, "constants", only_for=("envelope",))
    numeric_id: bool = same_as(Envelope, "numeric_id", only_for=("envelope",))
    source: str = same_as(CloudEvents, "source", only_for=("cloudevents",))
    mode: CloudEventsMode = same_as(CloudEvents, "mode", only_for=("cloudevents",))
    rate_limit: str | None = same_as(DestinationOptions, "rate_limit")
    ordering: Ordering = same_as(DestinationOptions, "ordering")

    def own(self, transport: TransportSettings) -> Mapping[str, Any]:
        """The settings of an address behind this transport."""
        return _own(self, transport.kind)


def _own(section: TransportSettings | DestinationSettings, kind: str) -> Mapping[str, Any]:
    """The values of the inlined class of a kind; of a kind without one, the table `options`."""
    if kind not in inlined_of(type(section)):
        return section.options or {}
    own = getattr(section, kind)
    return {one.name: getattr(own, one.name) for one in fields(own) if {"setting", "part"} & one.metadata.keys()}
