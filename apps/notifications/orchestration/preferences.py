"""Which channels reach a user for an event: what they chose, and for the rest what their audience gets by default.

What is said of the event's own type wins over what is said of every event.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from apps.notifications.words import EVERY_EVENT, Channel


class Default(NamedTuple):
    """An audience gets this channel for this type of event, or for every event."""

    event_type: str
    channel: Channel


class Preference(NamedTuple):
    """A user wants, or does not want, this channel for this type of event, or for every event."""

    event_type: str
    channel: Channel
    enabled: bool


def channels_for(
    event_type: str, *, defaults: Iterable[Default], preferences: Iterable[Preference] = ()
) -> list[Channel]:
    """In the order of `Channel`. The defaults of a type replace those of every event; a preference is one channel's."""
    offered: dict[str, set[Channel]] = {}
    for default in defaults:
        offered.setdefault(default.event_type, set()).add(default.channel)
    chosen = {(choice.event_type, choice.channel): choice.enabled for choice in preferences}
    usual = offered.get(event_type) or offered.get(EVERY_EVENT) or set()

    def wanted(channel: Channel) -> bool:
        in_general = chosen.get((EVERY_EVENT, channel), channel in usual)
        return chosen.get((event_type, channel), in_general)

    return [channel for channel in Channel if wanted(channel)]
