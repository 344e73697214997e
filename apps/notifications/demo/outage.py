"""Stops and restarts the mail server. Invariant: during an outage at least one push message is delivered."""

from __future__ import annotations

from apps.notifications.demo.servers import FakeMailServer, Gateway

EVERY = 20.0
"""Seconds between two outages in a run without a time limit."""
MAX_SECONDS = 5.0


class MailOutage:
    """Stops the mail server after the first mails, and restarts it after a push message. Call `poll` repeatedly."""

    def __init__(self, mail: FakeMailServer, gateway: Gateway, *, planned: float | None) -> None:
        self._mail = mail
        self._gateway = gateway
        self._length = MAX_SECONDS if planned is None else min(MAX_SECONDS, planned * 0.3)
        self._due = EVERY / 2 if planned is None else planned * 0.35
        self._again = planned is None
        self._stopped_at = 0.0
        self._pushed_before = 0
        self.count = 0
        self.delivered_during_outages = 0
        self.log: list[tuple[float, str]] = []

    def poll(self, elapsed: float, *, over: bool) -> None:
        """over: recording has ended, so no new outage starts and a current one ends soon."""
        if self._mail.open:
            if not over and elapsed >= self._due and self._mail.accepted:
                self._stop(elapsed)
            return
        pushed = self._gateway.accepted.total() - self._pushed_before
        lasted = elapsed - self._stopped_at
        if lasted >= self._length and (pushed or (over and lasted >= MAX_SECONDS)):
            self._restart(elapsed, pushed)

    def _stop(self, elapsed: float) -> None:
        self._mail.stop()
        self.count += 1
        self._stopped_at = elapsed
        self._pushed_before = self._gateway.accepted.total()
        self._due = elapsed + EVERY if self._again else float("inf")
        self.log.append((elapsed, "mail server stopped: mails are deferred, push and SMS are delivered"))

    def _restart(self, elapsed: float, pushed: int) -> None:
        self._mail.start()
        self.delivered_during_outages += pushed
        self.log.append((elapsed, f"mail server restarted; {pushed} push and SMS delivered during the outage"))
