"""What a driver's exception says, whichever driver it is and however SQLAlchemy wrapped it."""

from __future__ import annotations

from pillarbox.core.errors import layers


def driver_message(error: BaseException) -> str:
    """The first line of what the database itself said."""
    *_, innermost = layers(error)
    return str(innermost).partition("\n")[0]
