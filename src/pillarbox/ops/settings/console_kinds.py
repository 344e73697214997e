"""What values may look like that only the console has."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from pillarbox.ops.settings.kinds import Text

SHORTEST = 16
"""Characters of a secret."""


@dataclass(frozen=True, slots=True)
class Secret(Text):
    """A key that nobody shall guess."""

    def read(self, value: Any) -> str:
        if not isinstance(value, str) or len(value) < SHORTEST:
            raise ValueError(f"write at least {SHORTEST} characters that nobody can guess")
        return value


@dataclass(frozen=True, slots=True)
class Prefix(Text):
    """What paths begin with; empty: nothing."""

    def read(self, value: Any) -> str:
        if not isinstance(value, str) or not re.fullmatch(r"(?:/[\w.~-]+)*", value):
            raise ValueError("write a path that begins with a slash and ends with none, for example /outbox")
        return value
