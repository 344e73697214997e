"""Progress: a relay that is alive and could take lanes, fetch, send or settle, but does not, says so itself.

A stage counts time only while it could make progress and makes none. A pause, a rate limit, an open breaker, handlers
that occupy every sender, a store that does not renew the lease and an empty outbox all start it anew, so that none of
them raises an alarm. Checks come with the renewals of the lease; after a gap between two of them all begins anew.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from pillarbox.core.clock import Clock, seconds
from pillarbox.core.observations import Announcer, RelayStalled, RelayStallEnded
from pillarbox.relay.config import RelayConfig
from pillarbox.relay.heartbeat import Pulse
from pillarbox.relay.lanes import Ownership
from pillarbox.relay.send import Sender
from pillarbox.relay.settle import Settlement

RECOVERY = 15.0
"""Seconds beyond the lease within which every deliverable event leaves after a fault ended."""


class _Opportunity(NamedTuple):
    """A stage that could make progress now."""

    stage: str
    subject: Hashable
    """What of the stage: each transport sends by itself."""
    mark: Hashable
    """Another one than at the last check: there was progress."""
    reason: str


@dataclass(slots=True)
class _Wait:
    mark: Hashable
    seconds: float = 0.0


class Progress:
    """Watches one relay."""

    def __init__(
        self,
        *,
        relay: str,
        pulse: Pulse,
        ownership: Ownership,
        sender: Sender,
        settlement: Settlement,
        config: RelayConfig,
        clock: Clock,
        announce: Announcer,
    ) -> None:
        self.relay = relay
        self._pulse = pulse
        self._ownership = ownership
        self._sender = sender
        self._settlement = settlement
        self._clock = clock
        self._announce = announce
        self._interval = seconds(config.heartbeat)
        self._bound = seconds(config.lease) + RECOVERY + seconds(config.poll_interval)
        self._waits: dict[tuple[str, Hashable], _Wait] = {}
        self._stalled: RelayStalled | None = None
        self._rounds: int | None = None
        self._tended = 0
        self._checked = 0.0

    def fetching(self) -> None:
        """The fetch loop begins, or begins anew after the store failed."""
        self._rounds = self._rounds or 0

    def fetched(self) -> None:
        """The fetch loop completed a round."""
        self._rounds = (self._rounds or 0) + 1

    def tended(self) -> None:
        """A round of upkeep was completed: lanes, requests of operators, figures."""
        self._tended += 1

    def begin(self) -> None:
        """A life begins: nothing is known of it."""
        self._waits.clear()
        self._rounds = self._stalled = None
        self._pulse.stalled = ""

    def check(self) -> None:
        """Look for a stall. Called whenever the lease was renewed, whatever the duties of the relay wait for."""
        now = self._clock.monotonic()
        passed, self._checked = now - self._checked, now
        # Long after the last renewal the store was away, or the machine asleep: all begins anew.
        before, self._waits = self._waits if passed <= 2 * self._interval else {}, {}
        found: RelayStalled | None = None
        for stage, subject, mark, reason in self._opportunities():
            wait = before.get((stage, subject))
            wait = _Wait(mark, wait.seconds + passed) if wait is not None and wait.mark == mark else _Wait(mark)
            self._waits[stage, subject] = wait
            if found is None and wait.seconds > self._bound:
                found = RelayStalled(relay=self.relay, stage=stage, reason=reason, seconds=wait.seconds)
        self._tell(found)

    def _tell(self, found: RelayStalled | None) -> None:
        before, self._stalled = self._stalled, found
        self._pulse.stalled = found.reason if found is not None else ""
        if found is not None and (before is None or before.stage != found.stage):
            self._announce(found)
        elif found is None and before is not None:
            self._announce(RelayStallEnded(relay=self.relay, stage=before.stage, seconds=before.seconds))

    def _opportunities(self) -> Iterator[_Opportunity]:
        """What could make progress now, a cause before what follows from it."""
        if self._sender.stopping or not self._ownership.may_send():
            return
        if (oldest := self._settlement.oldest) is not None:
            yield _Opportunity(
                "settle",
                None,
                oldest,
                "the store renews the lease but does not accept the results of sends; see the errors in the relay's "
                "log, and check the database's locks, disk space and permissions",
            )
        if self._rounds is not None and self._ownership.epochs:
            yield _Opportunity(
                "fetch",
                None,
                self._rounds,
                "the store renews the lease but does not answer the fetch for pending events; check the database's "
                "locks and slow queries",
            )
        yield _Opportunity(
            "tend",
            None,
            self._tended,
            "the store renews the lease but does not hand out lanes or carry out requests; see the errors in the "
            "relay's log, and check the database's locks and permissions",
        )
        if (noting := self._sender.noting()) is not None:
            yield _Opportunity(
                "ledger",
                None,
                noting,
                "the store renews the lease but does not write the ledger, and nothing is sent before that; see the "
                "errors in the relay's log, and check the database's locks, disk space and permissions",
            )
        for sends, destination in self._sender.could_send():
            yield _Opportunity(
                "send",
                sends,
                sends.begun,
                f"events for {destination} can be sent and a sender is free, but no send begins; restart the relay and "
                "report its log",
            )
