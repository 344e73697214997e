"""The responses of the API as types, for events, dead letters and keys; `outbox_models` has the others.

The OpenAPI document describes them, and a test compares every response with them.

Times are texts in ISO 8601, in UTC. A count that was not finished is described by the field that has it.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

from pillarbox.admin.requests import Action
from pillarbox.admin.states import Accuracy
from pillarbox.ops.health import BreakerState, DestinationCondition, FlowState, ProblemKind

StateName = Literal[
    "ready", "in_flight", "retrying", "delayed", "waiting", "parked", "blocked", "published", "dead_lettered"
]
StatusName = Literal["PENDING", "PROCESSING", "PUBLISHED", "FAILED"]


class CountJson(TypedDict):
    count: int
    accuracy: Accuracy


class StatesJson(TypedDict):
    ready: CountJson
    in_flight: CountJson
    retrying: CountJson
    delayed: CountJson
    waiting: CountJson
    parked: CountJson
    blocked: CountJson
    published: CountJson
    dead_lettered: CountJson


class StateCountsJson(TypedDict):
    states: StatesJson


class LiveStatisticsJson(TypedDict):
    state: FlowState
    reason: str
    summary: str
    backlog: str
    oldest: str
    oldest_level: Literal["good", "warn", "bad"]
    dead_letters: str
    relays: str


class ProblemJson(TypedDict):
    kind: ProblemKind
    text: str
    destination: str | None
    event_id: str | None


class LaneJson(TypedDict):
    lane: int
    owner: str | None
    epoch: int
    crashes: int


class FlowStatusJson(TypedDict):
    state: FlowState
    reason: str
    problems: list[ProblemJson]
    backlog: int
    oldest_seconds: float | None
    exact: bool
    dead_letters: int
    paused: bool
    lanes: list[LaneJson]


class TimeSeriesJson(TypedDict):
    step: float
    times: list[float]
    recorded: list[float | None]
    published: list[float | None]
    p50: list[float | None]
    p95: list[float | None]
    p99: list[float | None]


class ListedEventJson(TypedDict):
    event_id: str
    destination: str
    state: StateName
    status: StatusName
    event_type: str
    key: str | None
    recorded_at: str
    published_at: str | None
    attempts: int
    retry_count: int
    last_attempt_at: str | None
    next_retry_at: str | None
    last_error: str | None


class EventPageJson(TypedDict):
    events: list[ListedEventJson]
    after: str | None


class EventDetailJson(TypedDict):
    sequence: int
    event_id: str
    destination: str
    state: StateName
    status: StatusName
    event_type: str
    aggregate_type: str | None
    aggregate_id: str | None
    key: str | None
    content_type: str
    schema_version: int
    correlation_id: str | None
    causation_id: str | None
    trace_id: str | None
    occurred_at: str
    recorded_at: str
    published_at: str | None
    seconds: float | None
    attempts: int
    retry_count: int
    last_error: str | None
    last_attempt_at: str | None
    next_retry_at: str | None
    locked_by: str | None
    locked_at: str | None
    dead_letter_id: int | None
    first_failed_at: str | None
    dead_lettered_at: str | None
    headers: NotRequired[dict[str, Any]]
    payload: NotRequired[Any]
    payload_base64: NotRequired[str]


class FailureJson(TypedDict):
    destination: str
    attempt: int
    counted: bool
    error: str
    attempted_at: str
    seconds: float | None


class OpenRequestJson(TypedDict):
    action: Action
    destination: str
    delay: float
    requested_by: str
    requested_at: str


class FirstPendingJson(TypedDict):
    event_id: str
    destination: str
    event_type: str
    held: str | None
    next_retry_at: str | None


class HoldingDestinationJson(TypedDict):
    destination: str
    state: DestinationCondition
    breaker: BreakerState
    forced: bool
    rate_limit: float | None


class EventReportJson(TypedDict):
    event_id: str
    events: list[EventDetailJson]
    failures: list[FailureJson]
    requests: list[OpenRequestJson]
    waiting_for_events: list[FirstPendingJson]
    waiting_for_destinations: list[HoldingDestinationJson]


class ListedDeadLetterJson(TypedDict):
    dead_letter_id: int
    event_id: str
    destination: str
    event_type: str
    key: str | None
    attempts: int
    error: str
    recorded_at: str
    first_failed_at: str | None
    dead_lettered_at: str


class DeadLetterPageJson(TypedDict):
    dead_letters: list[ListedDeadLetterJson]
    after: int | None


class DeadLetterGroupJson(TypedDict):
    group: str
    reason: str
    event_type: str
    destination: str
    count: int
    first_at: str
    last_at: str
    example: ListedDeadLetterJson


class DeadLetterGroupsJson(TypedDict):
    groups: list[DeadLetterGroupJson]
    complete: bool
    after: int | None


class BlockedKeyJson(TypedDict):
    key: str | None
    destination: str
    event_id: str
    event_type: str
    error: str | None
    since: str
    waiting: int
    next_retry_at: str | None


class BusiestKeyJson(TypedDict):
    key: str
    pending: int


class KeysJson(TypedDict):
    blocked: list[BlockedKeyJson]
    busiest: list[BusiestKeyJson]


class BlockedGroupJson(TypedDict):
    group: str
    reason: str
    event_type: str
    destination: str
    keys: int
    first_at: str
    last_at: str
    example: ListedEventJson


class BlockedGroupsJson(TypedDict):
    groups: list[BlockedGroupJson]
    complete: bool
