"""Check that the settings keep the guarantees: the retention of inbox and ledger, the lease, outages."""

from __future__ import annotations

from collections.abc import Sequence

from pillarbox.admin.diagnosis import Check, CheckResult, failed, passed, warned
from pillarbox.core.clock import seconds
from pillarbox.ops.settings import Settings


def checks(settings: Settings) -> Sequence[Check]:
    async def lease() -> CheckResult:
        return _lease(settings)

    async def inbox() -> CheckResult:
        return _inbox(settings)

    async def ledger() -> CheckResult:
        return _ledger(settings)

    async def outages() -> CheckResult:
        if settings.relay.config.outages == "count":
            return warned(
                'relay.outages is "count": an outage uses up attempts, so that valid events are dead-lettered',
                'set relay.outages = "wait", unless another system relies on dead letters after an outage',
            )
        return passed("an outage uses up no attempts")

    found = [
        Check(name="guarantees.lease", ask=lease),
        Check(name="guarantees.inbox", ask=inbox),
        Check(name="guarantees.outages", ask=outages),
    ]
    return [*found, Check(name="guarantees.ledger", ask=ledger)] if settings.store.ledger is True else found


def _lease(settings: Settings) -> CheckResult:
    relay = settings.relay.config
    lease, send = seconds(relay.lease), seconds(relay.send_timeout)
    if send > lease * 2 / 3:
        return warned(
            f"a send may take {relay.send_timeout} of a lease of {relay.lease}: if renewals fail during the send, less "
            "than a third of the lease is left to settle it before another relay sends it again",
            "set relay.lease to at least 1.5 × relay.send_timeout",
        )
    return passed(f"the send timeout ({relay.send_timeout}) is at most two thirds of the lease ({relay.lease})")


def _inbox(settings: Settings) -> CheckResult:
    kept, horizon = settings.relay.config.retention.in_seconds.inbox, settings.relay.retry.horizon()
    if kept is None:
        return passed("inbox records are kept forever")
    if horizon == float("inf"):
        return warned(
            f"attempts are unlimited, but inbox records are kept for {_span(kept)}: a later duplicate is handled again",
            'set relay.retry.max_attempts to a number, or relay.retention.inbox = "forever"',
        )
    if kept < horizon:
        return failed(
            f"inbox records are kept for {_span(kept)}, but an event is retried for up to {_span(horizon)}: a late "
            "duplicate is handled twice",
            f"raise relay.retention.inbox above {_span(horizon)}, or lower relay.retry.max_attempts",
        )
    retried = f"an event is retried for at most {_span(horizon)}"
    if settings.relay.config.outages == "wait":
        retried += ", outages not counted"
    return passed(f"inbox records are kept for {_span(kept)}; {retried}")


def _ledger(settings: Settings) -> CheckResult:
    kept, horizon = settings.relay.config.retention.in_seconds.ledger, settings.relay.retry.horizon()
    if kept is not None and kept < horizon < float("inf"):
        return warned(
            f"the ledger is kept for {_span(kept)}, but an event is retried for up to {_span(horizon)}: an event with "
            "several destinations may be sent twice",
            f"raise relay.retention.ledger above {_span(horizon)}",
        )
    return passed("the ledger is kept for longer than an event is retried")


def _span(duration: float) -> str:
    for unit, size in (("days", 86_400), ("h", 3600), ("min", 60)):
        if duration >= 2 * size:
            return f"{round(duration / size, 1):g} {unit}"
    return f"{round(duration, 1):g} s"
