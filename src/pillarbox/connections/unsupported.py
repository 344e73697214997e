"""The error for an object that `record` and the inbox cannot use, with what to pass instead."""

from __future__ import annotations

from pillarbox.connections import registry
from pillarbox.connections.kinds import kind_of
from pillarbox.core.errors import InvalidConnectionError


def refusal(connection: object) -> InvalidConnectionError:
    """The error for an object that is not a connection in a transaction."""
    what = f"{type(connection).__module__}.{type(connection).__qualname__}"
    step = kind_of(connection, registry.known_classes("remedies")) or f"pass {accepted()}"
    return InvalidConnectionError(f"{what} is not a transaction to work in; {step}")


def accepted() -> str:
    """What to pass, of all drivers."""
    return ", ".join(driver.accepts for driver in registry.known_drivers())
