"""What travels beside the body: see docs/reference/message-properties.md, which the tests hold this file to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pillarbox.core.errors import PermanentError
from pillarbox.core.transport import Outgoing
from pillarbox.transports.rabbitmq.driver import BasicProperties

_OWN = 8192
"""More bytes than everything but the headers can take in a frame: half a dozen texts of at most 255."""


def properties_of(outgoing: Outgoing, timestamp: int, frame_max: int) -> BasicProperties:
    """The properties of one message. Raises PermanentError if they do not fit into one frame: it would cost the
    connection, and every other message in flight with it."""
    message = outgoing.message
    _check_size(outgoing.headers, frame_max, message.event_id)
    headers: dict[str, Any] = {**outgoing.headers, "schemaVersion": message.schema_version}
    # It is a property of its own here.
    headers.pop("correlationId", None)
    return BasicProperties(
        message_id=message.event_id,
        content_type=outgoing.content_type,
        type=message.event_type,
        timestamp=timestamp,
        correlation_id=message.correlation_id,
        delivery_mode=2,
        headers=headers,
    )


def _check_size(headers: Mapping[str, str], frame_max: int, event_id: str) -> None:
    letters = sum(len(name) + len(value) for name, value in headers.items())
    if 4 * letters + _OWN < frame_max:
        return  # whatever the letters are, they fit
    size = sum(len(name.encode()) + len(value.encode()) + 6 for name, value in headers.items())
    if size + _OWN > frame_max:
        raise PermanentError(
            f"the headers of event {event_id} have {size} bytes, and the broker takes about {frame_max - _OWN} "
            "(its frame_max); put them in the payload"
        )
