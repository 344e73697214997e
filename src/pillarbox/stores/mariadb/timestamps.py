"""Times: MariaDB has no time zones, so every time is written and read in UTC."""

from __future__ import annotations

from datetime import datetime

from pillarbox.core.clock import timestamp
from pillarbox.core.message import EARLIEST


def decode_time(text: str) -> datetime:
    """A DATETIME of a row; `EARLIEST` for what is no date, such as 0000-00-00: one row must not hide the others."""
    try:
        return datetime.fromisoformat(f"{text}+00:00")
    except ValueError:
        return EARLIEST


def encode_time(time: datetime) -> str:
    """A time as MariaDB compares it: a driver would drop the offset."""
    return timestamp(time).removesuffix("Z")
