"""Events as JSON objects: what scripts get from `--json`, and what an archive is made of."""

from __future__ import annotations

import base64
import json
from datetime import datetime
from typing import Any

from pillarbox.admin.audit import AuditEntry
from pillarbox.admin.broker_dead_letters import BrokerLetter
from pillarbox.admin.dead_letters import ListedDeadLetter
from pillarbox.admin.diagnosis import TableSizes
from pillarbox.admin.keys import BlockedKey, Head
from pillarbox.admin.listing import EventDetail, Failure, ListedEvent
from pillarbox.admin.requests import OpenRequest
from pillarbox.core.clock import timestamp
from pillarbox.core.text import is_json, parse_json
from pillarbox.ops.flow import DestinationView
from pillarbox.ops.grouping import LetterGroup


def listed_event(event: ListedEvent) -> dict[str, Any]:
    return {
        "event_id": event.event_id,
        "destination": event.destination,
        "status": event.status.value,
        "event_type": event.event_type,
        "key": event.key,
        "recorded_at": written(event.recorded_at),
        "published_at": written(event.published_at),
        "attempts": event.attempts,
        "retry_count": event.retry_count,
        "last_attempt_at": written(event.last_attempt_at),
        "next_retry_at": written(event.next_retry_at),
        "last_error": event.last_error,
    }


def listed_letter(letter: ListedDeadLetter) -> dict[str, Any]:
    return {
        "letter": letter.id,
        "event_id": letter.event_id,
        "destination": letter.destination,
        "event_type": letter.event_type,
        "key": letter.key,
        "attempts": letter.attempts,
        "error": letter.error,
        "recorded_at": written(letter.recorded_at),
        "first_failed_at": written(letter.first_failed_at),
        "died_at": written(letter.died_at),
    }


def blocked_key(key: BlockedKey) -> dict[str, Any]:
    return key._asdict() | {"since": written(key.since), "next_try": written(key.next_try)}


def letter_group(group: LetterGroup) -> dict[str, Any]:
    return {
        "group": group.fingerprint,
        "reason": group.reason,
        "event_type": group.event_type,
        "destination": group.destination,
        "count": group.count,
        "first_at": written(group.first_at),
        "last_at": written(group.last_at),
        "example": listed_letter(group.example),
    }


def audit_entry(entry: AuditEntry) -> dict[str, Any]:
    return {
        "number": entry.id,
        "at": written(entry.at),
        "who": entry.who,
        "what": entry.what,
        "subject": entry.subject,
        "count": entry.count,
        "detail": dict(entry.detail),
    }


def head(holding: Head) -> dict[str, Any]:
    """What holds others of its key up."""
    held = None if holding.held is None else holding.held.value
    return holding._asdict() | {"held": held, "next_try": written(holding.next_try)}


def shut(view: DestinationView) -> dict[str, Any]:
    """A destination for which an event waits; what it last said stands in the event."""
    return {"destination": view.name, "state": view.state, "forced": view.forced, "rate_limit": view.rate_limit}


def footprint(found: TableSizes) -> dict[str, Any]:
    return {
        "bytes": found.bytes,
        "parts": [part._asdict() for part in found.parts],
        "oldest_transaction": None if found.oldest is None else found.oldest._asdict(),
    }


def event_detail(detail: EventDetail) -> dict[str, Any]:
    """Everything of one event; see `payload` for what it carries."""
    record: dict[str, Any] = detail._asdict()
    del record["headers_json"], record["payload"]
    record |= {name: written(value) for name, value in record.items() if isinstance(value, datetime)}
    record |= {"seconds": _precise(detail.seconds)}
    return record | {"status": detail.status.value, "headers": detail.headers} | payload(detail)


def broker_letter(letter: BrokerLetter) -> dict[str, Any]:
    """A dead letter on a broker, without what it carries: see `carried`."""
    return {
        "queue": letter.queue,
        "event_id": letter.event_id,
        "event_type": letter.event_type,
        "reason": letter.reason,
        "attempts": letter.attempts,
        "died_at": written(letter.died_at),
        "came_from": letter.came_from,
        "given_out": letter.given_out,
        "size": letter.size,
    }


def payload(detail: EventDetail) -> dict[str, Any]:
    """What an event carries."""
    return carried(bytes(detail.payload), detail.content_type)


def content(detail: EventDetail) -> dict[str, Any]:
    """What an event carries, with its headers."""
    return {"content_type": detail.content_type, "headers": detail.headers} | payload(detail)


def carried(raw: bytes, content_type: str) -> dict[str, Any]:
    """`payload` if it is JSON, and `payload_base64` unless that would give the same bytes: nothing is lost."""
    encoded = {"payload_base64": base64.b64encode(raw).decode()}
    if not is_json(content_type):
        return encoded
    try:
        decoded = parse_json(raw)
        # A number beyond what readers of JSON can hold is told by its bytes alone.
        again = json.dumps(decoded, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    except ValueError:
        return encoded
    return {"payload": decoded} if again == raw else {"payload": decoded} | encoded


def failure(failed: Failure) -> dict[str, Any]:
    return failed._asdict() | {"attempted_at": written(failed.attempted_at), "seconds": _precise(failed.seconds)}


def open_request(asked: OpenRequest) -> dict[str, Any]:
    return asked._asdict() | {"asked_at": written(asked.asked_at)}


def _precise(seconds: float | None) -> float | None:
    """To the six digits that every store keeps."""
    return None if seconds is None else float(f"{seconds:.6g}")


def readable(raw: bytes) -> str:
    """A payload for people."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return f"{len(raw)} bytes, in base64: {base64.b64encode(raw).decode()}"


def written(at: datetime | None) -> str | None:
    """A time for scripts."""
    return timestamp(at)
