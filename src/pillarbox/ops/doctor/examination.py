"""Run the checks in their order: settings, store, transports, guarantees, symptoms."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from pillarbox.admin.admin import AdminStore
from pillarbox.admin.diagnosis import LONG_TRANSACTION, Check, CheckResult, Finding, Result
from pillarbox.core.errors import ConfigurationError, PillarboxError
from pillarbox.core.statistics import OUTBOX, SAMPLE_RETENTION
from pillarbox.ops.destination_overrides import known_destinations
from pillarbox.ops.doctor import guarantees, symptoms
from pillarbox.ops.doctor import settings as settings_checks
from pillarbox.ops.settings import Settings
from pillarbox.ops.wiring import open_transport_diagnosis

TIMEOUT = 20.0
"""Seconds that one check may take."""
EVENT_TYPES = 50
"""How many queues, topics, subjects or streams that event types have created are checked at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The findings, in the order of the checks."""

    findings: tuple[Finding, ...]

    def of(self, result: Result) -> list[Finding]:
        return [finding for finding in self.findings if finding.result == result]

    @property
    def worst(self) -> Result:
        """`fail`, `warn` or `pass`."""
        return "fail" if self.of("fail") else "warn" if self.of("warn") else "pass"


def unreadable(error: ConfigurationError) -> Report:
    """Report invalid settings. Without valid settings no other check can run."""
    said = "; ".join(str(error).splitlines())
    return Report(
        findings=(Finding(check=settings_checks.READ, result="fail", message=said, fix=settings_checks.READ_FIX),)
    )


async def examine(settings: Settings, store: AdminStore, *, long_transaction: float = LONG_TRANSACTION) -> Report:
    """Run all checks. The errors that a check raises become findings; `store` stays open."""
    findings, _ = await _run(settings_checks.checks(settings, store))
    of_store, failed_gate = await _run(store.diagnosis.checks(long_transaction=long_transaction))
    findings += of_store
    created = await _created_by_type(settings, store) if failed_gate is None else ()
    for name in settings.transports:
        async with _transport_checks(settings, name, created) as checks:
            findings += (await _run(checks, subject=name))[0]
    about_guarantees, _ = await _run(guarantees.checks(settings))
    about_symptoms, _ = await _run(symptoms.checks(settings, store), failed=failed_gate)
    return Report(findings=(*findings, *about_guarantees, *about_symptoms))


async def _created_by_type(settings: Settings, store: AdminStore) -> Sequence[str]:
    """The destinations that event types have created or will create, if the settings have neither destinations nor
    routes. With several transports their names do not tell the transport."""
    if settings.destinations or settings.routes or len(settings.transports) != 1:
        return ()
    try:
        load = await store.admin.inspection.destinations()
        found = await known_destinations(store)
        found |= {sample.destination for sample in await store.admin.samples.since(SAMPLE_RETENTION)}
    except PillarboxError:
        return ()  # the checks of the store report it
    found |= {one.destination for one in load.delivered}
    found |= {group.destination or group.event_type for group in load.pending}
    return sorted(found - {"", OUTBOX})[:EVENT_TYPES]


@asynccontextmanager
async def _transport_checks(settings: Settings, name: str, created: Sequence[str]) -> AsyncIterator[Sequence[Check]]:
    try:
        diagnosis = open_transport_diagnosis(settings, name, created)
    except ConfigurationError:
        # The check of the settings reports this already.
        diagnosis = None
    if diagnosis is None:
        yield ()
        return
    try:
        yield diagnosis.checks()
    finally:
        await diagnosis.aclose()


async def _run(
    checks: Sequence[Check], *, subject: str = "", failed: str | None = None
) -> tuple[list[Finding], str | None]:
    """Run the checks. If one fails that others depend on (`Check.prerequisite`), the checks after it are skipped.

    failed: the name of an earlier check that these depend on and that failed. Returns the findings and that name.
    """
    findings: list[Finding] = []
    for check in checks:
        answer = await _ask(check) if failed is None else CheckResult("skip", f"skipped, because {failed} failed")
        findings.append(
            Finding(check=check.name, result=answer.result, message=answer.message, fix=answer.fix, subject=subject)
        )
        if check.prerequisite and answer.result == "fail":
            failed = check.name
    return findings, failed


async def _ask(check: Check) -> CheckResult:
    try:
        async with asyncio.timeout(TIMEOUT):
            return await check.ask()
    except TimeoutError:
        why = f"no answer within {TIMEOUT:g} s"
    except PillarboxError as error:
        why = str(error)
    return CheckResult(
        "fail" if check.prerequisite else "warn",
        f"the check could not run: {why}",
        "fix the cause and run doctor again",
    )
