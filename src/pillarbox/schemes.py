"""Stores, transports and sources by the scheme of a URL: ours, and those that other distributions register.

`open_store`, `open_transport` and `open_source` are the way in for applications; settings, command line, console and
doctor ask for the plugin of a scheme.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

from pillarbox.admin.admin import AdminStore
from pillarbox.core.clock import Duration
from pillarbox.core.errors import ConfigurationError
from pillarbox.core.payload import Size, payload_limit
from pillarbox.core.source import Source
from pillarbox.core.store import LedgerKind
from pillarbox.core.transport import Transport
from pillarbox.database_urls import plain_url
from pillarbox.plugins import StoreOptions, StorePlugin, TransportPlugin
from pillarbox.settings.shared import DEFAULT_MAX_PAYLOAD
from pillarbox.table_names import TableNames

STORES = "pillarbox.stores"
TRANSPORTS = "pillarbox.transports"

# Ours are registered here instead of in pyproject.toml: to look through the metadata of all installed distributions
# would take longer than most commands do.
_OURS = {
    STORES: {
        "postgresql": "pillarbox.stores.postgres.plugin:PostgresPlugin",
        "postgres": "pillarbox.stores.postgres.plugin:PostgresPlugin",
        "mariadb": "pillarbox.stores.mariadb.plugin:MariaDBPlugin",
        "mysql": "pillarbox.stores.mariadb.plugin:MariaDBPlugin",
        "sqlite": "pillarbox.stores.sqlite.plugin:SqlitePlugin",
        "memory": "pillarbox.stores.memory.plugin:MemoryPlugin",
    },
    TRANSPORTS: {
        "amqp": "pillarbox.transports.rabbitmq.plugin:RabbitMQPlugin",
        "amqps": "pillarbox.transports.rabbitmq.plugin:RabbitMQPlugin",
        "https": "pillarbox.transports.webhook.plugin:WebhookPlugin",
        "http": "pillarbox.transports.webhook.plugin:WebhookPlugin",
        "nats": "pillarbox.transports.nats.plugin:NatsPlugin",
        "tls": "pillarbox.transports.nats.plugin:NatsPlugin",
        "kafka": "pillarbox.transports.kafka.plugin:KafkaPlugin",
        "kafkas": "pillarbox.transports.kafka.plugin:KafkaPlugin",
        "redis": "pillarbox.transports.redis.plugin:RedisPlugin",
        "rediss": "pillarbox.transports.redis.plugin:RedisPlugin",
        "celery": "pillarbox.integrations.celery.transport:CeleryPlugin",
        "celerys": "pillarbox.integrations.celery.transport:CeleryPlugin",
        "stdout": "pillarbox.transports.stdout:StdoutPlugin",
        "memory": "pillarbox.transports.memory:MemoryTransportPlugin",
    },
}


def open_store(
    url: str,
    *,
    tables: TableNames = StoreOptions.tables,
    history: bool = StoreOptions.history,
    ledger: LedgerKind = StoreOptions.ledger,
    max_payload: Size = DEFAULT_MAX_PAYLOAD,
    statement_timeout: Duration = StoreOptions.statement_timeout,
    options: Mapping[str, Any] | None = None,
) -> AdminStore:
    """The store at a URL: `postgresql://…`, `mariadb://…`, `sqlite:///file.db`, `memory://`, or that of an adapter.

    The URL may name a driver of SQLAlchemy, as in `postgresql+asyncpg://…`, which the store does not use. Opens no
    connection. Raises ConfigurationError for a URL that names no store, and ImportError with the extra to install where
    the engine's driver is missing. The arguments are those of `StoreOptions`; `options` are the engine's own.
    """
    given = StoreOptions(
        tables=tables,
        history=history,
        ledger=ledger,
        max_payload=payload_limit(max_payload),
        statement_timeout=statement_timeout,
        extra=options or {},
    )
    url = plain_url(url)
    return store_plugin(scheme_of(url)).open(url, given)


def open_transport(url: str, **options: Any) -> Transport:
    """The transport at a URL: `amqp://…`, `https://…`, `stdout://`, `memory://`, or that of an installed adapter.

    Opens no connection. `options` are those of the transport, as in `[transports.NAME]`. Raises ConfigurationError for
    a URL that names no transport, and ImportError with the extra to install where its driver is missing.
    """
    return transport_plugin(scheme_of(url)).open(url, options)


def open_source(url: str, name: str, *, group: str = "", **options: Any) -> Source:
    """Where a consumer receives what was sent to `name` at a URL: a queue of RabbitMQ, a stream of Redis.

    Opens no connection. Consumers of one `group` share the messages; RabbitMQ ignores it, because its queues do that.
    `options` are those of the source's class. Raises ConfigurationError for a URL that names no broker, and
    ImportError with the extra to install where its driver is missing.
    """
    scheme = scheme_of(url)
    plugin = transport_plugin(scheme)
    if not plugin.sources:
        raise ConfigurationError(f"nothing can be received from {scheme}://; use the URL of a broker")
    return plugin.source(url, name, group, options)


def scheme_of(url: str) -> str:
    """What precedes `://`; '' if nothing does."""
    scheme, has_scheme, _ = url.partition("://")
    return scheme if has_scheme else ""


def own_schemes() -> Iterator[str]:
    """The schemes of our own adapters."""
    return (scheme for group in _OURS.values() for scheme in group)


def is_registered(group: str, scheme: str) -> bool:
    """Whether an adapter of that group has this scheme."""
    return scheme in _OURS[group] or bool(_entry_points(group, scheme))


def store_plugin(scheme: str) -> StorePlugin:
    """Raises ConfigurationError for a scheme that no store has."""
    plugin: type[StorePlugin] = _load(STORES, scheme, "store")
    return plugin()


def transport_plugin(scheme: str) -> TransportPlugin:
    """Raises ConfigurationError for a scheme that no transport has."""
    plugin: type[TransportPlugin] = _load(TRANSPORTS, scheme, "transport")
    return plugin()


def kind_of_transport(scheme: str) -> str:
    """What messages call the transport of this scheme. Raises ConfigurationError."""
    return transport_plugin(scheme).kind or scheme


def _load(group: str, scheme: str, what: str) -> Any:
    if scheme in _OURS[group]:
        module, _, attribute = _OURS[group][scheme].partition(":")
        return getattr(import_module(module), attribute)
    found = _entry_points(group, scheme)
    if not found:
        known = ", ".join(f"{one}://" for one in _OURS[group])
        named = f"{scheme}://" if scheme else "a URL without a scheme"
        raise ConfigurationError(
            f"there is no {what} for {named}; use {known}, or install a distribution that registers {scheme or 'it'!r} "
            f"under {group!r}"
        )
    if len(found) > 1:
        names = " and ".join(sorted(point.dist.name if point.dist else point.value for point in found))
        raise ConfigurationError(f"{names} both register {scheme!r} under {group!r}; uninstall one of them")
    [point] = found
    try:
        return point.load()
    except (ImportError, AttributeError) as error:
        raise ConfigurationError(
            f"the {what} for {scheme}:// cannot be loaded from {point.value}: {error}; reinstall its distribution"
        ) from error


def _entry_points(group: str, scheme: str) -> list[Any]:
    if not scheme:
        return []
    from importlib.metadata import entry_points  # takes longer to import than most commands to run

    return list(entry_points(group=group, name=scheme))
