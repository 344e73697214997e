"""Metrics of what the application itself does: notifications saved and delivered, messages that reach nobody."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter

from apps.notifications.words import Audience, Channel


class ListenerMetrics:
    """Of the listeners of one process."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._saved = Counter(
            "notifications_saved", "New notifications, committed or not.", ["audience", "channel"], registry=registry
        )
        self._unaddressed = Counter(
            "notifications_without_recipients",
            "Messages for an aggregate that has no recipients: nobody is notified.",
            ["audience"],
            registry=registry,
        )
        for audience in Audience:
            self._unaddressed.labels(audience)

    def saved(self, audience: Audience, channel: Channel) -> None:
        self._saved.labels(audience, channel).inc()

    def unaddressed(self, audience: Audience) -> None:
        self._unaddressed.labels(audience).inc()
