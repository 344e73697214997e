"""The channels of a user for an event: the user's preferences, and otherwise the defaults of the audience.

A rule for the event type takes precedence over a rule for every event.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from apps.notifications.domain import EVERY_EVENT, Channel


class Default(NamedTuple):
    """The audience gets this channel by default, for this event type or for every event."""

    event_type: str
    channel: Channel


class Preference(NamedTuple):
    """The user enabled or disabled this channel, for this event type or for every event."""

    event_type: str
    channel: Channel
    enabled: bool


def channels_for(
    event_type: str, *, defaults: Iterable[Default], preferences: Iterable[Preference] = ()
) -> list[Channel]:
    """The channels in the order of `Channel`. Defaults of an event type replace those of every event."""
    offered: dict[str, set[Channel]] = {}
    for default in defaults:
        offered.setdefault(default.event_type, set()).add(default.channel)
    chosen = {(choice.event_type, choice.channel): choice.enabled for choice in preferences}
    usual = offered.get(event_type) or offered.get(EVERY_EVENT) or set()

    def wanted(channel: Channel) -> bool:
        in_general = chosen.get((EVERY_EVENT, channel), channel in usual)
        return chosen.get((event_type, channel), in_general)

    return [channel for channel in Channel if wanted(channel)]
