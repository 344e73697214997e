"""The health of a process that consumes."""

from __future__ import annotations

from collections.abc import Mapping

from pillarbox.observations import (
    ConsumerObservation,
    ConsumerStarted,
    ConsumerStopped,
    ConsumerStopRequested,
    EventHandled,
    SourceFailed,
)


class ConsumerHealth:
    """An observer of the consumers of one process: UP while all of them run and receive."""

    def __init__(self) -> None:
        self._running: dict[str, bool] = {}
        self._errors: dict[str, str] = {}

    def __call__(self, observation: ConsumerObservation) -> None:
        match observation:
            case ConsumerStarted(consumer=consumer):
                self._running[consumer] = True
            case ConsumerStopRequested(consumer=consumer) | ConsumerStopped(consumer=consumer):
                self._running[consumer] = False
            case SourceFailed(consumer=consumer, error=error):
                self._errors[consumer] = error
            case EventHandled(consumer=consumer):
                self._errors.pop(consumer, None)

    async def look(self) -> tuple[bool, Mapping[str, object]]:
        """UP unless a consumer has stopped. A broker that is away is waited for, so it is shown and no reason to
        restart the process."""
        up = bool(self._running) and all(self._running.values())
        return up, {"consumers": dict(self._running), "lastSourceErrors": dict(self._errors)}
