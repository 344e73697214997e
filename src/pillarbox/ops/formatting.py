"""Format byte counts and durations for output."""

from __future__ import annotations


def format_bytes(count: int) -> str:
    """Format a number of bytes in the largest unit that fits."""
    for power, unit in ((4, "TiB"), (3, "GiB"), (2, "MiB"), (1, "KiB")):
        if count >= 1024**power:
            return f"{count / 1024**power:.1f} {unit}"
    return f"{count} B"


def format_latency(seconds: float | None) -> str:
    """Format the duration of a send in milliseconds or seconds; None is ''."""
    if seconds is None:
        return ""
    milliseconds = seconds * 1000
    if milliseconds < 10:
        return f"{milliseconds:.1f} ms"
    return f"{milliseconds:.0f} ms" if milliseconds < 1000 else f"{seconds:.1f} s"
