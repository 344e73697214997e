"""Request and response bodies."""

from __future__ import annotations

import json
from datetime import datetime, time
from hashlib import sha256
from typing import Annotated, Any, Literal, Self
from zoneinfo import ZoneInfo

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    StrictBool,
    StringConstraints,
    model_validator,
)

from apps.notifications.api.limits import MAX_EVENT_TYPE, MAX_EVENT_TYPES
from apps.notifications.domain import Audience, Channel
from apps.runtime.timestamps import timestamp

Moment = Annotated[datetime, PlainSerializer(timestamp, when_used="json")]


class Model(BaseModel):
    """Rejects unknown fields."""

    model_config = ConfigDict(extra="forbid")


# -- preferences ----------------------------------------------------------------------------------------------------


def _known_zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ValueError("not a time zone such as Europe/Rome") from None
    return name


def _text(value: object) -> object:
    """A number would be read as seconds since midnight."""
    if not isinstance(value, str | time):
        raise ValueError("not a time such as 22:00:00")
    return value


TimeOfDay = Annotated[time, BeforeValidator(_text)]
EventType = Annotated[str, StringConstraints(min_length=1, max_length=MAX_EVENT_TYPE, pattern=r"^[^\x00-\x1f\x7f]+$")]
TimeZone = Annotated[str, StringConstraints(max_length=64), AfterValidator(_known_zone)]


class QuietHours(Model):
    """When only IN_APP is delivered, in the user's time zone; may cross midnight."""

    starts: TimeOfDay = Field(examples=["22:00:00"])
    ends: TimeOfDay = Field(examples=["07:00:00"])

    @model_validator(mode="after")
    def _check_times(self) -> Self:
        if self.starts.tzinfo is not None or self.ends.tzinfo is not None:
            raise ValueError("times are in the user's time zone; omit the offset")
        if self.starts == self.ends:
            raise ValueError("starts and ends are equal; omit quiet_hours for no quiet hours")
        return self


class Preferences(Model):
    """The notification preferences of a user. The defaults of the audience apply to everything else."""

    time_zone: TimeZone = Field(examples=["Europe/Rome"])
    quiet_hours: QuietHours | None = None
    channels: dict[EventType, dict[Channel, StrictBool]] = Field(
        default={},
        max_length=MAX_EVENT_TYPES,
        description="By event type, `*` for all; the event type takes precedence.",
        examples=[{"*": {"SMS": False}, "ORDER_CREATED": {"SMS": True}}],
    )

    @property
    def version(self) -> str:
        """A hash of the preferences, for an ETag."""
        text = json.dumps(self.model_dump(mode="json"), sort_keys=True)
        return f'"{sha256(text.encode()).hexdigest()[:32]}"'


# -- notifications --------------------------------------------------------------------------------------------------


class Notification(Model):
    """One event for one user by one channel."""

    audience: Audience
    id: int
    user_id: int
    channel: Channel
    event_id: str
    event_type: str
    aggregate_id: int
    title: str
    body: str
    payload: dict[str, Any]
    created_at: Moment
    deliver_after: Moment | None
    read_at: Moment | None


class Page(Model):
    """Newest first."""

    notifications: list[Notification]
    next: str | None = Field(description="The `cursor` of the next page; null on the last one.")


class MarkedAsRead(Model):
    """How many notifications were unread."""

    read: int


# -- deliveries -----------------------------------------------------------------------------------------------------

DeliveryState = Literal["waiting", "sending", "delivered", "dead", "unknown"]


class DeliveryStatus(Model):
    """The state of one delivery."""

    channel: Channel
    notification_id: int
    state: DeliveryState = Field(description="unknown: so long ago that the outbox has forgotten it")
    failed_attempts: int = Field(description="How often it failed so far, outages included.")
    last_error: str | None
    next_attempt_at: Moment | None
    delivered_at: Moment | None


class DeliveryHistory(Model):
    """The deliveries of one event to one user."""

    event_id: str
    deliveries: list[DeliveryStatus]


class Waiting(Model):
    """The backlog of an outbox."""

    model_config = ConfigDict(from_attributes=True)

    backlog: int
    oldest_seconds: float
    """Age of the oldest pending event; 0 without any."""
    dead: int
    """Dead letters."""


class Health(Model):
    """UP or DOWN, with reasons and warnings for the operator."""

    status: Literal["UP", "DOWN"]
    recipients: int
    """Users who belong to an audience; without any, no notifications are created."""
    outboxes: dict[str, Waiting]
    reasons: list[str]
    """Why it is DOWN."""
    warnings: list[str]
