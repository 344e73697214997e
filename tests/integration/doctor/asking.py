"""Runs one check."""

from collections.abc import Sequence

from pillarbox.admin.diagnosis import Check, CheckResult


async def ask(checks: Sequence[Check], name: str) -> CheckResult:
    """The result of the check of this name."""
    [check] = [check for check in checks if check.name == name]
    return await check.ask()
