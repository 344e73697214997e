"""A dead letter, read: what a consumer of ours wrote on it, and what the broker did when it was the one who gave up.

The broker keeps a list of its own decisions in `x-death`, the latest first. A consumer of ours takes that list off when
it moves a message, so where there is one, the broker had the last word.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, cast

from pillarbox.admin.broker_dead_letters import BrokerDeadLetter
from pillarbox.core.outcome import legible
from pillarbox.transports.rabbitmq.source.headers import (
    LAST_FAILED_AT,
    QUEUE,
    REASON,
    count_in,
    delivery_count,
    incoming_of,
)
from pillarbox.transports.rabbitmq.source.intake import Arrival


def letter_of(arrival: Arrival) -> BrokerDeadLetter:
    """What came from a dead-letter queue. Whatever a stranger wrote on it, this raises nothing."""
    properties, queue = arrival.properties, arrival.queue
    incoming = incoming_of(properties, arrival.body)
    death = _last_death(properties.headers, queue)
    noted = incoming.headers
    return BrokerDeadLetter(
        queue=queue,
        event_id=_legible(incoming.event_id),
        event_type=_legible(incoming.event_type or noted.get("eventType")),
        reason="; before that: ".join(text for text in (_text(death, "reason"), noted.get(REASON)) if text) or None,
        attempts=incoming.attempts or count_in(death, "count"),
        died_at=_time(death) or _moment(noted.get(LAST_FAILED_AT)),
        came_from=_text(death, "queue") or noted.get(QUEUE) or None,
        given_out=delivery_count(properties, redelivered=arrival.redelivered),
        content_type=_legible(incoming.content_type),
        size=len(arrival.body),
        body=arrival.body,
    )


def _legible(text: str | None) -> str | None:
    """Bytes that are no UTF-8 are shown as such."""
    return None if text is None else legible(text)


def _last_death(headers: Mapping[str, Any], queue: str) -> Mapping[str, Any]:
    """The latest that did not happen in the queue where it lies now."""
    deaths = headers.get("x-death")
    found = cast(list[object], deaths) if isinstance(deaths, list) else []
    tables = (cast(dict[str, Any], death) for death in found if isinstance(death, dict))
    elsewhere = (death for death in tables if death.get("queue") not in (None, queue))
    return next(elsewhere, dict[str, Any]())


def _text(death: Mapping[str, Any], name: str) -> str | None:
    value = death.get(name)
    return value if isinstance(value, str) and value else None


def _time(death: Mapping[str, Any]) -> datetime | None:
    value = death.get("time")
    return value if isinstance(value, datetime) else None


def _moment(text: str | None) -> datetime | None:
    try:
        found = datetime.fromisoformat(text or "")
        return found.astimezone(UTC) if found.tzinfo else None
    except (ValueError, OverflowError):
        return None
