"""Formats the path of a value in a payload: `payload.items[2].price`."""

from __future__ import annotations

from collections.abc import Iterable


def dotted(steps: Iterable[str | int]) -> str:
    """The path of a value; names that are not identifiers are put in brackets."""
    return "payload" + "".join(_step(step) for step in steps)


def _step(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    return f".{step}" if step.isidentifier() else f"[{step[:80]!r}]"
