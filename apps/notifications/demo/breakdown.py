"""When the mail server breaks and when it comes back. What must stay true: in between something else was delivered."""

from __future__ import annotations

from apps.notifications.demo.outside import Gateway, Mailroom

EVERY = 20.0
"""Seconds from one breakdown to the next in a run without a planned end."""
LONGEST = 5.0


class Breakdown:
    """Asked again and again; breaks the mail server once mails have come, and mends it once a push has come since."""

    def __init__(self, mail: Mailroom, gateway: Gateway, *, planned: float | None) -> None:
        self._mail = mail
        self._gateway = gateway
        self._length = LONGEST if planned is None else min(LONGEST, planned * 0.3)
        self._due = EVERY / 2 if planned is None else planned * 0.35
        self._again = planned is None
        self._broke_at = 0.0
        self._pushed_before = 0
        self.times = 0
        self.pushed_meanwhile = 0
        self.happenings: list[tuple[float, str]] = []

    def look(self, elapsed: float, *, over: bool) -> None:
        """`over`: no more business, so that nothing new breaks, and what is broken is soon mended."""
        if self._mail.open:
            if not over and elapsed >= self._due and self._mail.took:
                self._break(elapsed)
            return
        pushed = self._gateway.took.total() - self._pushed_before
        lasted = elapsed - self._broke_at
        if lasted >= self._length and (pushed or (over and lasted >= LONGEST)):
            self._mend(elapsed, pushed)

    def _break(self, elapsed: float) -> None:
        self._mail.stop()
        self.times += 1
        self._broke_at = elapsed
        self._pushed_before = self._gateway.took.total()
        self._due = elapsed + EVERY if self._again else float("inf")
        self.happenings.append((elapsed, "the mail server broke: mails wait, push and SMS go on"))

    def _mend(self, elapsed: float, pushed: int) -> None:
        self._mail.start()
        self.pushed_meanwhile += pushed
        self.happenings.append((elapsed, f"the mail server is back; {pushed} push and SMS arrived meanwhile"))
