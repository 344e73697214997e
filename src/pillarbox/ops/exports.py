"""Events as JSON objects, for `--json`, the API of the console, and archives."""

from __future__ import annotations

import base64
import json
from dataclasses import asdict
from datetime import datetime
from typing import Any

from pillarbox.admin.audit import AuditEntry
from pillarbox.admin.broker_dead_letters import BrokerDeadLetter
from pillarbox.admin.dead_letters import ListedDeadLetter
from pillarbox.admin.diagnosis import TableSizes
from pillarbox.admin.keys import BlockedKey, FirstPending
from pillarbox.admin.listing import EventDetail, Failure, ListedEvent
from pillarbox.admin.overview import RelayView
from pillarbox.admin.requests import OpenRequest
from pillarbox.admin.states import StateCounts
from pillarbox.core.clock import timestamp
from pillarbox.core.payload import is_json, parse_json
from pillarbox.ops.blocked_keys import BlockedGroup
from pillarbox.ops.dead_letter_groups import DeadLetterGroup
from pillarbox.ops.destination_reports import DestinationReport
from pillarbox.ops.health import DestinationView, Problem


def listed_event(event: ListedEvent) -> dict[str, Any]:
    return {
        "event_id": event.event_id,
        "destination": event.destination,
        "state": event.state.value,
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


def state_counts(counts: StateCounts) -> dict[str, Any]:
    return {state.value: asdict(count) for state, count in counts.items()}


def listed_dead_letter(dead_letter: ListedDeadLetter) -> dict[str, Any]:
    return {
        "dead_letter_id": dead_letter.id,
        "event_id": dead_letter.event_id,
        "destination": dead_letter.destination,
        "event_type": dead_letter.event_type,
        "key": dead_letter.key,
        "attempts": dead_letter.attempts,
        "error": dead_letter.error,
        "recorded_at": written(dead_letter.recorded_at),
        "first_failed_at": written(dead_letter.first_failed_at),
        "dead_lettered_at": written(dead_letter.dead_lettered_at),
    }


def relay(view: RelayView, *, lanes: int) -> dict[str, Any]:
    """Return a relay; lanes: how many it owns."""
    return {
        "id": view.id,
        "name": view.name,
        "host": view.host,
        "version": view.version,
        "lanes": lanes,
        "in_flight": view.in_flight,
        "lease_seconds": round(view.lease, 3),
        "up_seconds": round(view.age, 3),
        "draining": view.draining,
        "stalled": view.stalled or None,
        "breakers": dict(view.breakers),
    }


def blocked_key(key: BlockedKey) -> dict[str, Any]:
    return key._asdict() | {"since": written(key.since), "next_retry_at": written(key.next_retry_at)}


def blocked_group(group: BlockedGroup) -> dict[str, Any]:
    return {
        "group": group.fingerprint,
        "reason": group.reason,
        "event_type": group.event_type,
        "destination": group.destination,
        "keys": group.keys,
        "first_at": written(group.first_at),
        "last_at": written(group.last_at),
        "example": listed_event(group.example),
    }


def dead_letter_group(group: DeadLetterGroup) -> dict[str, Any]:
    return {
        "group": group.fingerprint,
        "reason": group.reason,
        "event_type": group.event_type,
        "destination": group.destination,
        "count": group.count,
        "first_at": written(group.first_at),
        "last_at": written(group.last_at),
        "example": listed_dead_letter(group.example),
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


def first_pending(holding: FirstPending) -> dict[str, Any]:
    """Return an event that later events of its key wait for."""
    held = None if holding.held is None else holding.held.value
    return holding._asdict() | {"held": held, "next_retry_at": written(holding.next_retry_at)}


def held_by_destination(view: DestinationView) -> dict[str, Any]:
    """Return a destination that an event waits for; the last error is part of the event."""
    told = destination(view)
    del told["last_error"]
    return {"destination": told.pop("name"), **told}


def destination(view: DestinationView) -> dict[str, Any]:
    return {
        "name": view.name,
        "state": view.state,
        "breaker": view.breaker,
        "forced": view.forced,
        "rate_limit": view.rate_limit,
        "last_error": view.last_error,
    }


def destination_report(report: DestinationReport) -> dict[str, Any]:
    """Return a destination with what is pending for it, its rates, and the author of its override."""
    rates, change = report.rates, report.change
    return destination(report.view) | {
        "pending": asdict(report.pending),
        "oldest_seconds": None if report.oldest is None else round(report.oldest, 3),
        "states": {state.value: count for state, count in report.states.items()},
        "recorded_per_second": None if report.recorded is None else round(report.recorded, 3),
        "published_per_second": None if rates is None else round(rates.published, 3),
        "failed_share": None if rates is None else round(rates.failed, 4),
        "lag_p95_seconds": None if rates is None or rates.p95 is None else round(rates.p95, 4),
        "changed_by": None if change is None else change.by,
        "changed_at": None if change is None else written(change.at),
    }


def problem(found: Problem) -> dict[str, Any]:
    return {
        "kind": found.kind,
        "text": found.sentence,
        "destination": None if found.destination is None else found.destination.name,
        "event_id": found.event_id,
    }


def table_sizes(found: TableSizes) -> dict[str, Any]:
    return {
        "bytes": found.bytes,
        "tables": [part._asdict() for part in found.parts],
        "oldest_transaction": None if found.oldest is None else found.oldest._asdict(),
    }


def event_detail(detail: EventDetail) -> dict[str, Any]:
    """Return all columns of an event; see `payload` for the payload."""
    record: dict[str, Any] = detail._asdict()
    del record["headers_json"], record["payload"]
    record |= {name: written(value) for name, value in record.items() if isinstance(value, datetime)}
    record |= {"sequence": record.pop("id"), "seconds": _precise(detail.seconds)}
    record |= {"state": detail.state.value, "status": detail.status.value}
    return record | {"headers": detail.headers} | payload(detail)


def broker_dead_letter(dead_letter: BrokerDeadLetter) -> dict[str, Any]:
    """Return a dead letter of a broker without its payload: see `carried`."""
    return {
        "queue": dead_letter.queue,
        "event_id": dead_letter.event_id,
        "event_type": dead_letter.event_type,
        "reason": dead_letter.reason,
        "attempts": dead_letter.attempts,
        "dead_lettered_at": written(dead_letter.dead_lettered_at),
        "original_queue": dead_letter.original_queue,
        "delivery_count": dead_letter.delivery_count,
        "size": dead_letter.size,
    }


def payload(detail: EventDetail) -> dict[str, Any]:
    """Return the payload of an event."""
    return carried(bytes(detail.payload), detail.content_type)


def content(detail: EventDetail) -> dict[str, Any]:
    """Return the payload and the headers of an event."""
    return {"content_type": detail.content_type, "headers": detail.headers} | payload(detail)


def carried(raw: bytes, content_type: str) -> dict[str, Any]:
    """Return `payload` if it is JSON, and `payload_base64` unless compact JSON restores the same bytes."""
    encoded = {"payload_base64": base64.b64encode(raw).decode()}
    if not is_json(content_type):
        return encoded
    try:
        decoded = parse_json(raw)
        # JSON readers cannot represent NaN and infinity: these payloads are base64 only.
        again = json.dumps(decoded, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    except ValueError:
        return encoded
    return {"payload": decoded} if again == raw else {"payload": decoded} | encoded


def failure(failed: Failure) -> dict[str, Any]:
    return failed._asdict() | {"attempted_at": written(failed.attempted_at), "seconds": _precise(failed.seconds)}


def open_request(asked: OpenRequest) -> dict[str, Any]:
    return asked._asdict() | {"requested_at": written(asked.requested_at)}


def _precise(seconds: float | None) -> float | None:
    """Round to six significant digits, the precision of every store."""
    return None if seconds is None else float(f"{seconds:.6g}")


def readable(raw: bytes) -> str:
    """Return a payload as text, or as base64 with its size."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return f"{len(raw)} bytes, in base64: {base64.b64encode(raw).decode()}"


def written(at: datetime | None) -> str | None:
    """Format a time for JSON."""
    return timestamp(at)
