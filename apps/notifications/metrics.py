"""Metrics of the listeners: saved notifications, and messages without recipients."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter

from apps.notifications.domain import Audience, Channel


class ListenerMetrics:
    """Metrics of the listeners of one process."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._saved = Counter(
            "notifications_saved", "New notifications, committed or not.", ["audience", "channel"], registry=registry
        )
        self._unaddressed = Counter(
            "notifications_without_recipients",
            "Messages for an aggregate without recipients; they create no notifications.",
            ["audience"],
            registry=registry,
        )
        for audience in Audience:
            self._unaddressed.labels(audience)

    def saved(self, audience: Audience, channel: Channel) -> None:
        self._saved.labels(audience, channel).inc()

    def unaddressed(self, audience: Audience) -> None:
        self._unaddressed.labels(audience).inc()
