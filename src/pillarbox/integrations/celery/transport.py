"""Celery as a destination: each event becomes a task in a queue of RabbitMQ, over the transport of RabbitMQ.

So publisher confirms, batches, unroutable messages and outages are those of RabbitMQ. Queues are declared as a Celery
worker declares them, so that relay and worker may start in either order.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pillarbox.core.clock import Duration
from pillarbox.core.errors import ConfigurationError, PermanentError, UnavailableError
from pillarbox.core.message import Message
from pillarbox.core.transport import Address, Outgoing, Pace, SendResult
from pillarbox.integrations.celery.task_message import CONTENT_TYPE, task_body, task_headers
from pillarbox.plugins import TransportDiagnosis, TransportPlugin
from pillarbox.settings import Choice, Span, Text, check_settings, documented, setting
from pillarbox.settings.shared import SEND_TIMEOUT
from pillarbox.settings.tls import tls_grouped
from pillarbox.transports.address_template import AddressTemplate
from pillarbox.transports.rabbitmq.plugin import RabbitMQAddress, RabbitMQOptions
from pillarbox.transports.rabbitmq.topology import Queue, QueueType, check_name

if TYPE_CHECKING:
    from celery import Celery

    from pillarbox.transports.rabbitmq.transport import RabbitMQTransport

DEFAULT_QUEUE = "celery"
"""Celery's own default."""
_SCHEMES = {"celery": "amqp", "celerys": "amqps"}
_OF_CELERY = {"amqp": "celery", "pyamqp": "celery", "amqps": "celerys"}


@documented
@dataclass(frozen=True, kw_only=True)
class CeleryOptions(RabbitMQOptions):
    """The settings of a transport to Celery besides its URL, in `[transports.NAME.options]`."""

    python_name: ClassVar[str] = "CeleryTransport"

    queue: str = setting(DEFAULT_QUEUE, Text(), "The queue of tasks whose destination names none.")
    queue_type: QueueType = setting(
        "classic",
        Choice.of(QueueType),
        "The type of the queues that the relay declares, as `task_default_queue_type` of the workers.",
    )
    send_timeout: Duration = setting(SEND_TIMEOUT, Span(), "How long the broker may take to confirm a task.")


@documented
@dataclass(frozen=True, slots=True, kw_only=True)
class CeleryAddress(Address):
    """The name of a task, and the queue of its workers. Raises ConfigurationError."""

    messaging_system: ClassVar[str] = "rabbitmq"

    task: str = setting(
        "{event_type}",
        Text(),
        "The name of the task, which may contain `{event_type}`, `{aggregate_type}`, `{aggregate_id}` and `{key}`.",
    )
    queue: str = setting("", Text(), "The queue of the task. Empty: that of the transport.")
    _template: AddressTemplate = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_settings(self)
        template = AddressTemplate.parse("the name of the task", self.task)
        if not template.parts:
            raise ConfigurationError("the task has no name; write it as the worker knows it: shop.tasks.send_mail")
        if self.queue != "":
            check_name("the queue", self.queue)
        object.__setattr__(self, "_template", template)

    def task_for(self, message: Message) -> str:
        """The name of the task for this message. Raises PermanentError if the message lacks a value."""
        return self._template.name_for(message)

    def destination_name(self, message: Message) -> str:
        return self.queue


class CeleryTransport:
    """Sends events as tasks to the workers of a Celery application on RabbitMQ.

    `url` is that of the broker with the scheme `celery` (TLS: `celerys`): `celery://user:password@host:port/vhost`.
    `queue` is where tasks go whose destination names none; `queue_type` is the type of the queues as the workers
    declare them (`task_default_queue_type`). `options` are those of `RabbitMQTransport`, such as `window`. Raises
    ConfigurationError.
    """

    address_type: type[Address] = CeleryAddress
    to = CeleryAddress
    """`CeleryTransport.to(task="shop.tasks.send_mail", queue="mail")`: a task in a queue."""

    def __init__(
        self,
        url: str,
        *,
        queue: str = CeleryOptions.queue,
        queue_type: QueueType = CeleryOptions.queue_type,
        **options: Any,
    ) -> None:
        from pillarbox.transports.rabbitmq.transport import RabbitMQTransport

        check_name("the queue", queue)
        self._queue = queue
        self._broker: RabbitMQTransport = RabbitMQTransport(broker_url(url), new_queues=queue_type, **options)

    @classmethod
    def from_app(cls, app: Celery, **options: Any) -> Self:
        """The transport to the workers of this application: its broker, its default queue and their type.

        Raises ConfigurationError if its broker is not RabbitMQ.
        """
        conf = app.conf
        url = conf.get("broker_write_url") or conf.get("broker_url") or "amqp://"
        if not isinstance(url, str) or ";" in url:
            raise ConfigurationError("the Celery application has several brokers; pass the URL of one: celery://…")
        scheme, _, rest = url.partition("://")
        if scheme not in _OF_CELERY:
            raise ConfigurationError(
                f"the broker of the Celery application is {scheme}://; events become tasks on RabbitMQ only: set "
                "broker_url to amqp://…, or send the task in a handler"
            )
        if rest.endswith("//"):  # Celery's way to write the virtual host /
            rest = rest.removesuffix("/")
        usual = {"queue": conf.get("task_default_queue"), "queue_type": conf.get("task_default_queue_type")}
        given = {name: value for name, value in usual.items() if value} | options
        return cls(f"{_OF_CELERY[scheme]}://{rest}", **given)

    def __repr__(self) -> str:
        return f"<CeleryTransport over {self._broker!r}>"

    @property
    def pace(self) -> Pace:
        return self._broker.pace

    def defaults(self, event_type: str) -> Mapping[str, Address]:
        """The task named after the type."""
        return {event_type: CeleryAddress()}

    async def send(self, batch: Sequence[Outgoing]) -> list[SendResult]:
        """Publish the tasks and wait for the confirms. Raises UnavailableError once closed."""
        results: list[SendResult] = [None] * len(batch)
        tasks: dict[int, Outgoing] = {}
        for position, one in enumerate(batch):
            try:
                tasks[position] = self._task(one)
            except (PermanentError, UnavailableError) as error:
                results[position] = error
        sent = await self._broker.send(list(tasks.values()))
        for position, result in zip(tasks, sent, strict=True):
            results[position] = result
        return results

    async def ping(self) -> None:
        """Connect and wait for a reply. Raises UnavailableError."""
        await self._broker.ping()

    async def aclose(self) -> None:
        """Close the connection; closing twice is fine."""
        await self._broker.aclose()

    def _task(self, one: Outgoing) -> Outgoing:
        address = one.address
        if not isinstance(address, CeleryAddress):
            raise UnavailableError(f"{address!r} is not an address of Celery; use CeleryTransport.to(…)")
        return one._replace(
            address=queue_address(address.queue or self._queue),
            body=task_body(one),
            content_type=CONTENT_TYPE,
            headers=task_headers(one, address.task_for(one.message)),
        )


class CeleryPlugin(TransportPlugin):
    """`celery://…` and `celerys://…`; options are the arguments of `CeleryTransport` and `CeleryAddress`."""

    kind = "celery"
    default_routing = "each event to the Celery task named after its type"
    pipelined = True
    transport_options = CeleryOptions
    destination_options = CeleryAddress

    def open(self, url: str, options: Mapping[str, Any]) -> CeleryTransport:
        with _checked("transport"):
            return CeleryTransport(url, **tls_grouped(options))

    def address(self, destination: str, options: Mapping[str, Any]) -> Address:
        with _checked("destination"):
            return CeleryAddress(**options)

    def diagnosis(
        self, url: str, options: Mapping[str, Any], addresses: Mapping[str, Address]
    ) -> TransportDiagnosis | None:
        """The checks of RabbitMQ, for the queues of the tasks."""
        from pillarbox.transports.rabbitmq.diagnosis import RabbitMQDiagnosis

        self.open(url, options)  # checks the options
        usual, kind = options.get("queue", CeleryOptions.queue), options.get("queue_type", CeleryOptions.queue_type)
        queues = {name: one.queue or usual for name, one in addresses.items() if isinstance(one, CeleryAddress)}
        return RabbitMQDiagnosis(
            broker_url(url),
            queues=[Queue(name=queue, type=kind) for queue in dict.fromkeys([usual, *queues.values()])],
            addresses={name: queue_address(queue) for name, queue in queues.items()},
            declare=options.get("declare", True),
            tls=tls_grouped(options).get("tls"),
        )


def broker_url(url: str) -> str:
    """The URL of the broker. Raises ConfigurationError, which never quotes the URL."""
    scheme, _, rest = url.partition("://")
    if scheme not in _SCHEMES:
        raise ConfigurationError(
            "the URL of Celery's broker must begin with celery:// or celerys://, as in celery://app@mq:5672/%2F"
        )
    return f"{_SCHEMES[scheme]}://{rest}"


def queue_address(queue: str) -> RabbitMQAddress:
    """The queue on the default exchange; braces in its name are no placeholders."""
    return RabbitMQAddress(routing_key=queue.replace("{", "{{").replace("}", "}}"))


@contextmanager
def _checked(what: str) -> Generator[None, None, None]:
    """Turn an unknown option into a ConfigurationError."""
    try:
        yield
    except TypeError as error:
        raise ConfigurationError(f"options of a {what} for Celery: {error}; remove or correct it") from None
