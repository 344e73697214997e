"""`pillarbox doctor`: run all checks, and print each result with its fix."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click

from pillarbox.admin.diagnosis import LONG_TRANSACTION, Finding, Result
from pillarbox.core.errors import ConfigurationError
from pillarbox.ops.cli.context import current_settings, quiet_drivers
from pillarbox.ops.cli.exits import EXCEEDED
from pillarbox.ops.cli.output import as_json, clean, print_json, print_line
from pillarbox.ops.cli.parameters import age

if TYPE_CHECKING:
    from pillarbox.ops.doctor import Report

_COLOURS = {"pass": "green", "warn": "yellow", "fail": "red", "skip": "dim"}


@click.command()
@click.option("--strict", is_flag=True, help="Exit with 3 also for warnings.")
@click.option(
    "--long-transaction",
    type=age,
    default=f"{LONG_TRANSACTION:.0f}s",
    show_default=True,
    metavar="DURATION",
    help="Warn about transactions that are open for longer.",
)
@as_json
def doctor(strict: bool, long_transaction: float, as_json: bool) -> None:
    """Check settings, store, transports, guarantees and symptoms, and name a fix for each finding.

    The command changes nothing. It exits with 3 if a check failed; with --strict, also if one warned.
    docs/reference/doctor.md describes each check.

    \b
    Examples:
      pillarbox doctor
      pillarbox doctor --strict --json
      pillarbox doctor --long-transaction 1h
    """
    quiet_drivers()
    report = _examined(long_transaction)
    if as_json:
        print_json({"result": report.worst, "findings": [_object(finding) for finding in report.findings]})
    else:
        _print(report)
    if report.worst == "fail" or (strict and report.worst == "warn"):
        raise SystemExit(EXCEEDED)


def _examined(long_transaction: float) -> Report:
    from pillarbox.ops.cli.store_access import name_default_store, refuse_memory
    from pillarbox.ops.doctor import examine, unreadable
    from pillarbox.ops.wiring import open_store

    try:
        settings = current_settings()
        refuse_memory(settings)
        name_default_store()
        store = open_store(settings.store)
    except ConfigurationError as error:
        return unreadable(error)

    async def run() -> Report:
        try:
            return await examine(settings, store, long_transaction=long_transaction)
        finally:
            await store.aclose()

    return asyncio.run(run())


def _object(finding: Finding) -> dict[str, str]:
    return {
        "check": finding.check,
        "subject": finding.subject,
        "result": finding.result,
        "message": finding.message,
        "fix": finding.fix,
    }


def _print(report: Report) -> None:
    for finding in report.findings:
        of = f" ({clean(finding.subject)})" if finding.subject else ""
        colour = _COLOURS[finding.result]
        print_line(f"{finding.result:<4}  {finding.check}{of}: {clean(finding.message)}", colour=colour)
        if finding.fix:
            click.echo(f"      fix: {clean(finding.fix)}")
    print_line(_sum(report), colour=_COLOURS[report.worst])


def _sum(report: Report) -> str:
    words: dict[Result, str] = {"pass": "passed", "warn": "warned", "fail": "failed", "skip": "skipped"}
    return ", ".join(f"{len(found)} {said}" for result, said in words.items() if (found := report.of(result)))
