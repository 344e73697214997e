"""Further responses of the API as types: destinations, relays, consumers, store, audit, and the results of actions."""

from __future__ import annotations

from typing import Any, TypedDict

from pillarbox.admin.diagnosis import Result
from pillarbox.ops.console.api.models import CountJson
from pillarbox.ops.health import BreakerState, DestinationCondition


class DestinationJson(TypedDict):
    name: str
    state: DestinationCondition
    breaker: BreakerState
    forced: bool
    rate_limit: float | None
    last_error: str | None
    pending: CountJson
    oldest_seconds: float | None
    states: dict[str, int]
    recorded_per_second: float | None
    published_per_second: float | None
    failed_share: float | None
    lag_p95_seconds: float | None
    changed_by: str | None
    changed_at: str | None


class DestinationsJson(TypedDict):
    paused: bool
    destinations: list[DestinationJson]


class DestinationPageJson(DestinationJson):
    published_last_hour: list[float]


class RelayJson(TypedDict):
    id: str
    name: str
    host: str
    version: str
    lanes: int
    in_flight: int
    lease_seconds: float
    up_seconds: float
    draining: bool
    stalled: str | None
    breakers: dict[str, str]


class RelaysJson(TypedDict):
    relays: list[RelayJson]


class ConsumerJson(TypedDict):
    name: str
    records: int
    processed: int | None
    duplicates: int | None
    failures: int | None
    dead_lettered: int | None
    last_error: str | None
    last_failed_at: str | None
    expired_records: int | None


class InboxJson(TypedDict):
    consumers: list[ConsumerJson]
    retention_seconds: float | None
    expired_records: int | None


class SchemaJson(TypedDict):
    version: int
    required: int
    breaking: int
    pending: list[str]
    problems: list[str]


class TableJson(TypedDict):
    name: str
    rows: int | None
    dead_rows: int | None
    bytes: int
    partition_of: str


class TransactionJson(TypedDict):
    pid: int
    user: str
    application: str
    state: str
    seconds: float
    query: str


class StoreJson(TypedDict):
    schema: SchemaJson
    bytes: int
    tables: list[TableJson]
    oldest_transaction: TransactionJson | None


class AuditEntryJson(TypedDict):
    number: int
    at: str
    who: str
    what: str
    subject: str
    count: int
    detail: dict[str, Any]


class AuditPageJson(TypedDict):
    audit: list[AuditEntryJson]
    after: int | None


class FindingJson(TypedDict):
    check: str
    result: Result
    message: str
    fix: str
    subject: str


class DoctorJson(TypedDict):
    result: Result
    checked_at: str
    findings: list[FindingJson]


class MessageJson(TypedDict):
    message: str


class RequestedJson(TypedDict):
    matched: int
    selection: str
    requested: int
    dry_run: bool


class DeadLetterResultJson(TypedDict):
    matched: int
    selection: str
    done: int
    requested: int
    dry_run: bool


class ContentJson(TypedDict):
    sha256: str
    bytes: int


class PayloadChangeJson(TypedDict):
    old: ContentJson
    new: ContentJson


class HeaderChangeJson(TypedDict):
    set: list[str]
    removed: list[str]


class EditResultJson(TypedDict):
    event_id: str
    destination: str
    dead_letter_id: int
    payload: PayloadChangeJson
    headers: HeaderChangeJson
    changed: bool
    done: bool
    dry_run: bool


class ReplayStartedJson(TypedDict):
    replay: int
    message: str


class ErasureJson(TypedDict):
    selection: str
    pending: int
    history: int
    dead_letters: int
    requested: int
    dry_run: bool
