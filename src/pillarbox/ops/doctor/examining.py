"""Making the checks in their order: settings, store, transports, guarantees, symptoms."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from pillarbox.admin.admin import AdminStore
from pillarbox.admin.diagnosis import LONG_TRANSACTION, Answer, Check, Finding, Result
from pillarbox.core.errors import ConfigurationError, PillarboxError
from pillarbox.ops.doctor import guarantees, symptoms
from pillarbox.ops.doctor import settings as settings_checks
from pillarbox.ops.settings import Settings
from pillarbox.ops.wiring import open_transport_diagnosis

PATIENCE = 20.0
"""Seconds that one check may take, whatever it waits for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What was found, in order."""

    findings: tuple[Finding, ...]

    def of(self, result: Result) -> list[Finding]:
        return [finding for finding in self.findings if finding.result == result]

    @property
    def worst(self) -> Result:
        """`fail`, `warn` or `pass`."""
        return next((result for result in ("fail", "warn") if self.of(result)), "pass")


def unreadable(error: ConfigurationError) -> Report:
    """Where the settings are wrong, nothing else can be looked at."""
    said = "; ".join(str(error).splitlines())
    return Report(
        findings=(Finding(check=settings_checks.READ, result="fail", said=said, fix=settings_checks.READ_FIX),)
    )


async def examine(settings: Settings, store: AdminStore, *, long_transaction: float = LONG_TRANSACTION) -> Report:
    """Look at everything. Raises nothing that a check could find out; `store` stays open."""
    findings, _ = await _made(settings_checks.checks(settings, store))
    of_store, shut = await _made(store.diagnosis.checks(long_transaction=long_transaction))
    findings += of_store
    for name in settings.transports:
        async with _transport_checks(settings, name) as checks:
            findings += (await _made(checks, subject=name))[0]
    promised, _ = await _made(guarantees.checks(settings))
    felt, _ = await _made(symptoms.checks(settings, store), failed=shut)
    return Report(findings=(*findings, *promised, *felt))


@asynccontextmanager
async def _transport_checks(settings: Settings, name: str) -> AsyncIterator[Sequence[Check]]:
    try:
        diagnosis = open_transport_diagnosis(settings, name)
    except ConfigurationError:
        # Told by the check of the settings already.
        diagnosis = None
    if diagnosis is None:
        yield ()
        return
    try:
        yield diagnosis.checks()
    finally:
        await diagnosis.aclose()


async def _made(
    checks: Sequence[Check], *, subject: str = "", failed: str | None = None
) -> tuple[list[Finding], str | None]:
    """Make each, until one fails on which the others depend; `failed` names one before them that did.

    Returns the findings, and the name of the one that failed.
    """
    findings = []
    for check in checks:
        answer = await _asked(check) if failed is None else Answer("skip", f"not looked at, because {failed} failed")
        findings.append(
            Finding(check=check.name, result=answer.result, said=answer.said, fix=answer.fix, subject=subject)
        )
        if check.gate and answer.result == "fail":
            failed = check.name
    return findings, failed


async def _asked(check: Check) -> Answer:
    try:
        async with asyncio.timeout(PATIENCE):
            return await check.ask()
    except TimeoutError:
        why = f"no answer within {PATIENCE:g} s"
    except PillarboxError as error:
        why = str(error)
    return Answer("fail" if check.gate else "warn", f"could not be looked at: {why}", "mend that, and run this again")
