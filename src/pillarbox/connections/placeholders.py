"""Statements are written once, with $1 … $n in order; each driver gets them in its own style."""

from __future__ import annotations

import re
from enum import Enum
from functools import lru_cache

_PLACEHOLDER = re.compile(r"\$\d+")


class Style(Enum):
    """How a driver marks the place of a value."""

    DOLLAR = "$1"
    PERCENT = "%s"
    QUESTION = "?"


@lru_cache(maxsize=256)
def render(sql: str, style: Style) -> str:
    """`sql` in the style of a driver."""
    match style:
        case Style.DOLLAR:
            return sql
        case Style.PERCENT:
            return _PLACEHOLDER.sub("%s", sql.replace("%", "%%"))
        case Style.QUESTION:
            return _PLACEHOLDER.sub("?", sql)
