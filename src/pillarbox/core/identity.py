"""Ids of events: UUID version 7, so that ids made one after another sort that way and index pages stay warm."""

from __future__ import annotations

import os
import time


def uuid7() -> str:
    """A new UUIDv7 as text: 48 bits of milliseconds, 12 bits of their fraction, 62 random bits."""
    milliseconds, rest = divmod(time.time_ns(), 1_000_000)
    fraction = rest * 4096 // 1_000_000
    number = milliseconds << 80 | 0x7 << 76 | fraction << 64
    number |= 0b10 << 62 | int.from_bytes(os.urandom(8), "big") >> 2
    digits = f"{number:032x}"  # by hand: uuid.UUID costs another microsecond
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
