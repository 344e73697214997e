"""What the settings promise: can a repeat slip past the inbox or the ledger, can a lease end during a send?"""

from __future__ import annotations

from collections.abc import Sequence

from pillarbox.admin.diagnosis import Answer, Check, failed, passed, warned
from pillarbox.core.clock import seconds
from pillarbox.ops.settings import Settings


def checks(settings: Settings) -> Sequence[Check]:
    async def lease() -> Answer:
        return _lease(settings)

    async def inbox() -> Answer:
        return _inbox(settings)

    async def ledger() -> Answer:
        return _ledger(settings)

    async def outages() -> Answer:
        if settings.relay.config.outages == "count":
            return warned(
                'relay.outages is "count": an outage uses up attempts, and healthy events become dead letters',
                'relay.outages = "wait", unless another system expects the giving up',
            )
        return passed("an outage uses up no attempts")

    found = [
        Check(name="guarantees.lease", ask=lease),
        Check(name="guarantees.inbox", ask=inbox),
        Check(name="guarantees.outages", ask=outages),
    ]
    return [*found, Check(name="guarantees.ledger", ask=ledger)] if settings.store.ledger is True else found


def _lease(settings: Settings) -> Answer:
    relay = settings.relay.config
    lease, send = seconds(relay.lease), seconds(relay.send_timeout)
    if send > lease * 2 / 3:
        return warned(
            f"a send may take {relay.send_timeout} of a lease of {relay.lease}: if renewals fail meanwhile, less than "
            "a third is left to settle it before another relay sends it again",
            "a lease of at least one and a half times relay.send_timeout",
        )
    return passed(f"a send ends ({relay.send_timeout}) well within the lease ({relay.lease})")


def _inbox(settings: Settings) -> Answer:
    kept, horizon = settings.relay.config.retention.in_seconds.receipts, settings.relay.retry.horizon()
    if kept is None:
        return passed("receipts of the inbox are kept for ever")
    if horizon == float("inf"):
        return warned(
            f"events are tried without end, receipts are kept for {_span(kept)}: a repeat later has its effect again",
            'give relay.retry.max_attempts a number, or keep receipts for ever: relay.retention.inbox = "forever"',
        )
    if kept < horizon:
        return failed(
            f"receipts of the inbox are kept for {_span(kept)}, but an event is tried for {_span(horizon)}: a late "
            "repeat has its effect twice",
            "raise relay.retention.inbox beyond that, or lower relay.retry.max_attempts",
        )
    tried = f"an event is tried for {_span(horizon)} at most"
    if settings.relay.config.outages == "wait":
        tried += ", outages not counted"
    return passed(f"receipts of the inbox are kept for {_span(kept)}, {tried}")


def _ledger(settings: Settings) -> Answer:
    kept, horizon = settings.relay.config.retention.in_seconds.ledger, settings.relay.retry.horizon()
    if kept is not None and kept < horizon < float("inf"):
        return warned(
            f"the ledger remembers for {_span(kept)}, but an event is tried for {_span(horizon)}: of one with several "
            "destinations a repeat may be sent again",
            "raise relay.retention.ledger beyond that",
        )
    return passed("the ledger remembers for longer than an event is tried")


def _span(duration: float) -> str:
    for unit, size in (("days", 86_400), ("h", 3600), ("min", 60)):
        if duration >= 2 * size:
            return f"{round(duration / size, 1):g} {unit}"
    return f"{round(duration, 1):g} s"
