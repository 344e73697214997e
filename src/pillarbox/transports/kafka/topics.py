"""The topics that messages go to: whether they exist, and creating those that do not."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from pillarbox.core.errors import UnavailableError
from pillarbox.transports.kafka.driver import (
    FORBIDDEN,
    UNKNOWN_TOPIC,
    AdminClient,
    KafkaError,
    KafkaException,
    NewTopic,
    Producer,
    error_of,
    reason_of,
)
from pillarbox.transports.kafka.plugin import KafkaEndpoint, KafkaOptions

_DEFAULT = -1
"""Partitions and replicas that the broker decides."""
_REMEMBERED = 2.0
"""Seconds for which a topic counts as missing without asking again: asking takes a request, creating it several."""


class Topics:
    """Finds topics, and creates them with `declare`."""

    def __init__(self, endpoint: KafkaEndpoint, options: KafkaOptions, timeout: float) -> None:
        self._endpoint = endpoint
        self._options = options
        self._timeout = timeout
        self._missing: dict[str, tuple[float, UnavailableError]] = {}
        self.partitions: dict[str, int] = {}
        """How many each topic had when it was last described."""

    def known_missing(self, topics: Iterable[str]) -> dict[str, UnavailableError]:
        """Those of the topics that could not be sent to a moment ago."""
        now = time.monotonic()
        self._missing = {topic: found for topic, found in self._missing.items() if found[0] > now}
        return {topic: self._missing[topic][1] for topic in topics if topic in self._missing}

    def describe(self, client: Any, topic: str) -> KafkaError | None:
        """What a broker says of a topic; None: it exists. Blocks. Raises KafkaException if no broker responds."""
        found = client.list_topics(topic, timeout=self._timeout).topics[topic]
        error: KafkaError | None = found.error
        if error is None:
            self.partitions[topic] = len(found.partitions)
        return error

    def missing(self, client: Producer, topics: Iterable[str]) -> dict[str, UnavailableError]:
        """Why topics cannot be sent to; creates what is missing with `declare`. Blocks. Raises KafkaException."""
        errors = self._ask(client, topics)
        until = time.monotonic() + _REMEMBERED
        self._missing = self._missing | {topic: (until, error) for topic, error in errors.items()}
        return errors

    def _ask(self, client: Producer, topics: Iterable[str]) -> dict[str, UnavailableError]:
        errors: dict[str, UnavailableError] = {}
        unknown: list[str] = []
        for topic in topics:
            error = self.describe(client, topic)
            if error is None:
                continue
            if error.code() in UNKNOWN_TOPIC:
                unknown.append(topic)
            elif error.code() in FORBIDDEN:
                errors[topic] = self.forbidden(topic, error)
            elif error.code() == KafkaError.TOPIC_EXCEPTION:
                errors[topic] = UnavailableError(f"topic {topic!r} at {self._endpoint}: {reason_of(error)}")
            # Else it exists, and has no leader for the moment.
        if not self._options.declare:
            return errors | {topic: self.unknown(topic) for topic in unknown}
        return errors | self.create(unknown)

    def create(self, topics: Iterable[str]) -> dict[str, UnavailableError]:
        """Create topics; returns the errors of those that could not be created. Blocks."""
        new = [
            NewTopic(
                topic,
                num_partitions=self._options.partitions or _DEFAULT,
                replication_factor=self._options.replication or _DEFAULT,
            )
            for topic in topics
        ]
        if not new:
            return {}
        errors: dict[str, UnavailableError] = {}
        admin = AdminClient(self._endpoint.settings())  # its futures end with it
        creating = admin.create_topics(new, request_timeout=self._timeout, operation_timeout=self._timeout)
        for topic, created in creating.items():
            try:
                created.result(self._timeout + 1)
            except KafkaException as raised:
                error = error_of(raised)
                if error.code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    errors[topic] = UnavailableError(
                        f"topic {topic!r} at {self._endpoint} does not exist and cannot be created: "
                        f"{reason_of(error)}; create it, or grant this user the right to"
                    )
            except TimeoutError:
                errors[topic] = UnavailableError(f"topic {topic!r} at {self._endpoint} was not created in time")
        return errors

    def unknown(self, topic: str) -> UnavailableError:
        """The error of a topic that does not exist."""
        return UnavailableError(f"topic {topic!r} does not exist at {self._endpoint}; create it, or set declare = true")

    def forbidden(self, topic: str, error: KafkaError) -> UnavailableError:
        """The error of a topic that this user must not write to or read from."""
        return UnavailableError(
            f"Kafka at {self._endpoint} refuses topic {topic!r}: {reason_of(error)}; grant this user the right to it"
        )
