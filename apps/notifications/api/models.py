"""What goes in and out, as its readers see it."""

from __future__ import annotations

import json
from datetime import datetime, time
from hashlib import sha256
from typing import Annotated, Any, Literal, Self
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PlainSerializer, StringConstraints, model_validator

from apps.common.timestamps import timestamp
from apps.notifications.api.limits import LONGEST_EVENT_TYPE, MOST_EVENT_TYPES
from apps.notifications.words import Audience, Channel

Moment = Annotated[datetime, PlainSerializer(timestamp, when_used="json")]


class Model(BaseModel):
    """A misspelt field is an error, not something to be ignored."""

    model_config = ConfigDict(extra="forbid")


# -- preferences ----------------------------------------------------------------------------------------------------


def _known_zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ValueError("it is no time zone such as Europe/Rome") from None
    return name


EventType = Annotated[
    str, StringConstraints(min_length=1, max_length=LONGEST_EVENT_TYPE, pattern=r"^[^\x00-\x1f\x7f]+$")
]
TimeZone = Annotated[str, StringConstraints(max_length=64), AfterValidator(_known_zone)]


class QuietHours(Model):
    """When nothing but IN_APP is delivered, in the user's time zone; it may cross midnight."""

    starts: time = Field(examples=["22:00:00"])
    ends: time = Field(examples=["07:00:00"])

    @model_validator(mode="after")
    def _some_time_between(self) -> Self:
        if self.starts.tzinfo is not None or self.ends.tzinfo is not None:
            raise ValueError("times are those of the user's time zone; leave the offset out")
        if self.starts == self.ends:
            raise ValueError("starts and ends are the same; leave quiet_hours out for none at all")
        return self


class Preferences(Model):
    """How a user wants to be told. What is not said here is as the audience's defaults have it."""

    time_zone: TimeZone = Field(examples=["Europe/Rome"])
    quiet_hours: QuietHours | None = None
    channels: dict[EventType, dict[Channel, bool]] = Field(
        default={},
        max_length=MOST_EVENT_TYPES,
        description="By event type, `*` for all; the type itself wins.",
        examples=[{"*": {"SMS": False}, "ORDER_CREATED": {"SMS": True}}],
    )

    @property
    def version(self) -> str:
        """The same for the same preferences, and for no others; fit for an ETag."""
        said = json.dumps(self.model_dump(mode="json"), sort_keys=True)
        return f'"{sha256(said.encode()).hexdigest()[:32]}"'


# -- notifications --------------------------------------------------------------------------------------------------


class Notification(Model):
    """One user, one channel, one thing that happened."""

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
    next: str | None = Field(description="Ask for the next page with `cursor`; null at the end.")


class MarkedAsRead(Model):
    """How many were unread until now."""

    read: int


# -- deliveries -----------------------------------------------------------------------------------------------------

DeliveryState = Literal["waiting", "sending", "delivered", "dead", "unknown"]


class DeliveryStatus(Model):
    """How far one channel has come with what happened."""

    channel: Channel
    notification_id: int
    state: DeliveryState = Field(description="unknown: so long ago that the outbox has forgotten it")
    deferrals: int = Field(description="How often it failed so far.")
    last_error: str | None
    next_try_at: Moment | None
    delivered_at: Moment | None


class DeliveryHistory(Model):
    """One thing that happened, told to one user."""

    event_id: str
    deliveries: list[DeliveryStatus]


class Waiting(Model):
    """What waits in an outbox."""

    model_config = ConfigDict(from_attributes=True)

    backlog: int
    oldest_seconds: float
    """How long the oldest event has waited; 0 without any."""
    dead: int
    """Dead letters."""


class Health(Model):
    """Whether the service can do its work, and what an operator should know."""

    status: Literal["UP", "DOWN"]
    recipients: int
    """Users who belong to an audience; without any, nobody is notified."""
    outboxes: dict[str, Waiting]
    reasons: list[str]
    """Why it is DOWN."""
    warnings: list[str]
