"""How long a send took, for people."""

from __future__ import annotations


def latency(seconds: float | None) -> str:
    """In milliseconds, to a tenth where they are few, or in seconds; nothing where it is not known."""
    if seconds is None:
        return ""
    milliseconds = seconds * 1000
    if milliseconds < 10:
        return f"{milliseconds:.1f} ms"
    return f"{milliseconds:.0f} ms" if milliseconds < 1000 else f"{seconds:.1f} s"
