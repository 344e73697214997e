"""The topic of a drill on Kafka, which the groups of both readers receive from."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from pillarbox.core.errors import UnavailableError
from pillarbox.core.source import Source
from pillarbox.plugins import DrillQueue, Reader
from pillarbox.settings.tls import tls_grouped
from pillarbox.transports.kafka.driver import UNKNOWN_TOPIC, AdminClient, KafkaException, error_of, reason_of
from pillarbox.transports.kafka.plugin import KafkaAddress, KafkaEndpoint, KafkaOptions, positive
from pillarbox.transports.kafka.source import KafkaSource
from pillarbox.transports.kafka.topics import Topics
from pillarbox.transports.kafka.transport import KafkaTransport

READERS: tuple[Reader, ...] = ("audit", "work")
PREFETCH = 50
SESSION = {"session.timeout.ms": 6000}
"""A group notices after this time that a consumer was killed."""


class KafkaDrillQueue(DrillQueue):
    """A topic, with the topics of its two consumer groups."""

    redelivers_in_order = True

    def __init__(self, url: str, options: Mapping[str, Any], name: str) -> None:
        given = tls_grouped(options)
        self._url, self._name = url, name
        self._given = {key: given[key] for key in given if key not in ("send_timeout", "window", "declare", "client")}
        self._client = dict(given.get("client") or {})
        self._reply_timeout = given["send_timeout"]
        known = {key: value for key, value in options.items() if key in KafkaOptions.__dataclass_fields__}
        checked = KafkaOptions(**known)
        self._endpoint = KafkaEndpoint.parse(url, checked)
        self._timeout = positive("connect_timeout", checked.connect_timeout)
        self._topics = Topics(self._endpoint, checked, self._timeout)
        given["declare"] = False
        self.transport = KafkaTransport(url, **given)
        self.address = KafkaAddress(topic=name)

    @property
    def names(self) -> Sequence[str]:
        return [f"topic {name}" for name in self._all()]

    def source(self, reader: Reader) -> Source:
        return KafkaSource(
            self._url,
            topic=self._name,
            group=self._group(reader),
            prefetch=PREFETCH,
            reply_timeout=self._reply_timeout,
            client=SESSION | self._client,
            **self._given,
        )

    async def existing(self) -> Sequence[str]:
        return await asyncio.to_thread(self._existing)

    async def create(self) -> None:
        for error in (await asyncio.to_thread(self._topics.create, self._all())).values():
            raise error

    async def drop(self) -> None:
        await asyncio.to_thread(self._delete)

    async def aclose(self) -> None:
        await self.transport.aclose()

    def _group(self, reader: Reader) -> str:
        return f"{self._name}.{reader}"

    def _all(self) -> list[str]:
        around = (f"{self._name}.{self._group(reader)}" for reader in READERS)
        return [self._name, *(f"{group}.{kind}" for group in around for kind in ("retry", "dlq"))]

    def _existing(self) -> list[str]:
        client = AdminClient(self._endpoint.settings())
        try:
            found = client.list_topics(timeout=self._timeout).topics
        except KafkaException as raised:
            raise UnavailableError(f"Kafka at {self._endpoint}: {reason_of(error_of(raised))}") from None
        return [f"topic {name}" for name in self._all() if name in found]

    def _delete(self) -> None:
        client = AdminClient(self._endpoint.settings())
        for topic, deleted in client.delete_topics(self._all(), request_timeout=self._timeout).items():
            try:
                deleted.result(self._timeout + 1)
            except KafkaException as raised:
                if error_of(raised).code() not in UNKNOWN_TOPIC:
                    reason = reason_of(error_of(raised))
                    raise UnavailableError(f"topic {topic!r} at {self._endpoint} cannot be deleted: {reason}") from None
            except TimeoutError:
                raise UnavailableError(f"topic {topic!r} at {self._endpoint} was not deleted in time") from None
