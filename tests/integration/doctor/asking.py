"""One check at a time."""

from collections.abc import Sequence

from pillarbox.admin.diagnosis import Check, CheckResult


async def ask(checks: Sequence[Check], name: str) -> CheckResult:
    """What the check of this name finds."""
    [check] = [check for check in checks if check.name == name]
    return await check.ask()
