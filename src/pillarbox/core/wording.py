"""Counts as people say them: one event waits, two events wait."""

from __future__ import annotations


def noun(count: int, one: str, many: str = "") -> str:
    """What is counted, without the count; `many` where more than an s is to be added."""
    return one if count == 1 else many or f"{one}s"


def plural(count: int, one: str, many: str = "", *, most: int | None = None) -> str:
    """A count and what is counted; a count beyond `most` stands for that many or more."""
    if most is not None and count > most:
        return f"more than {most:,} {noun(count, one, many)}"
    return f"{count:,} {noun(count, one, many)}"
