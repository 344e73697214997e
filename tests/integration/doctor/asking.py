"""One check at a time."""

from collections.abc import Sequence

from pillarbox.admin.diagnosis import Answer, Check


async def ask(checks: Sequence[Check], name: str) -> Answer:
    """What the check of this name finds."""
    [check] = [check for check in checks if check.name == name]
    return await check.ask()
