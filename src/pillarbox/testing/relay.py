"""A relay for a test: delivers what a captured outbox has in memory, on virtual time, then stops."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from pillarbox.core.clock import Duration, seconds
from pillarbox.core.errors import ConfigurationError
from pillarbox.core.observations import EventDeadLettered, EventDelivered, EventRetried, Observation
from pillarbox.core.retry import RetryPolicy
from pillarbox.core.transport import Address, Transport
from pillarbox.relay.config import RelayConfig
from pillarbox.relay.relay import Relay
from pillarbox.relay.routing import Destination, Route
from pillarbox.testing.capture import CapturedOutbox
from pillarbox.testing.recorded import RecordedEvents

T = TypeVar("T")

MAX_ROUNDS = 10_000
"""Rounds of `run_until_idle` before it fails: a handler may record a new event for every event."""


class Attempt(NamedTuple):
    """One send of an event to one destination."""

    event_type: str
    event_id: str
    destination: str
    number: int
    """The number of this attempt, from 1."""
    error: str = ""
    """Why it failed; '' if it was delivered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayRun:
    """What one run of a memory relay did."""

    delivered: tuple[Attempt, ...]
    failures: tuple[Attempt, ...]
    """Failed attempts that are retried."""
    dead_letters: tuple[Attempt, ...]
    pending: int
    """Messages that stay: scheduled for later, or held back."""

    def assert_all_delivered(self) -> None:
        """Assert that nothing is pending and nothing was dead-lettered; shows what handlers raised."""
        __tracebackhide__ = True
        if not self.pending and not self.dead_letters:
            return
        lines = [f"{self.pending} pending, {len(self.dead_letters)} dead-lettered, {len(self.delivered)} delivered"]
        lines += [f"  dead letter: {_described(attempt)}" for attempt in self.dead_letters]
        last = {(attempt.event_id, attempt.destination): attempt for attempt in self.failures}
        lines += [f"  failure: {_described(attempt)}" for attempt in last.values()]
        raise AssertionError("\n".join(lines))


class MemoryRelay:
    """Delivers the events of a captured outbox to handlers, or to any other transport, without waiting.

    It runs the real relay: routing, order per key, retries and dead letters are those of production.
    """

    def __init__(
        self,
        outbox: CapturedOutbox,
        transport: Transport | Mapping[str, Transport],
        *,
        destinations: Mapping[str, Destination | Address] | None = None,
        routes: Sequence[Route] = (),
        retry: RetryPolicy | None = None,
        config: RelayConfig | None = None,
    ) -> None:
        """transport: usually `Handlers`; or name → transport. The other arguments are those of `Relay`."""
        self._outbox = outbox
        self._arguments: dict[str, Any] = {
            "transports": transport if isinstance(transport, Mapping) else {"handlers": transport},
            "destinations": destinations,
            "routes": routes,
            "retry": retry,
            "config": config,
        }

    def run(self, recorded: RecordedEvents | None = None) -> RelayRun:
        """Deliver what is due now, and return what happened; delayed events and retries stay scheduled.

        recorded: events that were read from a database, to deliver, too; each once, however often it is passed.
        """
        return _run(self.arun(recorded), "arun")

    def run_until_idle(self, recorded: RecordedEvents | None = None, *, within: Duration = "30 days") -> RelayRun:
        """Deliver what is due, advance the clock to the next delayed event or retry, and so on until none is left.

        within: how far the clock may advance; what is due later stays scheduled.
        """
        return _run(self.arun_until_idle(recorded, within=within), "arun_until_idle")

    async def arun(self, recorded: RecordedEvents | None = None) -> RelayRun:
        """`run`, for tests that are coroutines."""
        if recorded is not None:
            self._outbox.copy(recorded)
        attempts = _Attempts()
        relay = Relay(
            store=self._outbox.store,
            clock=self._outbox.clock,
            observers=[attempts],
            threaded_heartbeat=False,
            **self._arguments,
        )
        pending = await relay.run_until_empty()
        return attempts.result(pending)

    async def arun_until_idle(
        self, recorded: RecordedEvents | None = None, *, within: Duration = "30 days"
    ) -> RelayRun:
        """`run_until_idle`, for tests that are coroutines."""
        clock, store = self._outbox.clock, self._outbox.store
        end = clock.monotonic() + seconds(within, field="within")
        runs = [await self.arun(recorded)]
        while (due := store.next_due()) is not None:
            if clock.monotonic() + (due - clock.now()).total_seconds() > end:
                break
            if len(runs) > MAX_ROUNDS:
                raise AssertionError(
                    f"not idle after {MAX_ROUNDS} rounds, {store.next_due()} is next: a handler records new events "
                    "without end; pass a shorter `within`, or call run() once"
                )
            clock.advance_to(due)
            runs.append(await self.arun())
        return RelayRun(
            delivered=tuple(attempt for run in runs for attempt in run.delivered),
            failures=tuple(attempt for run in runs for attempt in run.failures),
            dead_letters=tuple(attempt for run in runs for attempt in run.dead_letters),
            pending=runs[-1].pending,
        )


class _Attempts:
    """The observer of one run."""

    def __init__(self) -> None:
        self._delivered: list[Attempt] = []
        self._failures: list[Attempt] = []
        self._dead_letters: list[Attempt] = []

    def __call__(self, observation: Observation) -> None:
        match observation:
            case EventDelivered(message=m, destination=destination):
                self._delivered.append(Attempt(m.event_type, m.event_id, destination, m.attempts + m.deferrals + 1))
            case EventRetried(message=m, destination=destination, attempt=attempt, error=error):
                self._failures.append(Attempt(m.event_type, m.event_id, destination, attempt, error))
            case EventDeadLettered(message=m, destination=destination, attempt=attempt, error=error):
                self._dead_letters.append(Attempt(m.event_type, m.event_id, destination, attempt, error))
            case _:
                pass

    def result(self, pending: int) -> RelayRun:
        return RelayRun(
            delivered=tuple(self._delivered),
            failures=tuple(self._failures),
            dead_letters=tuple(self._dead_letters),
            pending=pending,
        )


def _described(attempt: Attempt) -> str:
    to = attempt.destination or "no destination"
    return f"{attempt.event_type} to {to}, attempt {attempt.number}: {attempt.error}"


def _run(work: Coroutine[Any, Any, T], instead: str) -> T:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    work.close()
    raise ConfigurationError(f"an event loop is running, and this call would block it; call await {instead}(…)")
