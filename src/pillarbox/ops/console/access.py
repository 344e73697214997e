"""Who may do what. Looking needs a login, acting a role, and what events carry a right of its own."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from pillarbox.core.errors import ConfigurationError


class Role(IntEnum):
    """Each may do what those before it may."""

    VIEWER = 1
    """Looks."""
    OPERATOR = 2
    """Sends again, drops, pauses, resumes, replays, drains."""
    ADMIN = 3
    """Forces breakers, sets limits."""

    @property
    def word(self) -> str:
        return self.name.lower()

    @classmethod
    def of(cls, word: str) -> Role:
        """Raises ConfigurationError."""
        try:
            return cls[word.strip().upper()]
        except KeyError:
            raise ConfigurationError(f"{word!r} is no role: write viewer, operator or admin") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """Somebody who is logged in; what they do is written down under this name."""

    name: str
    role: Role = Role.VIEWER
    payloads: bool = False
    """May see payloads and headers."""


PAYLOADS = "payloads"


def rights(text: str) -> tuple[Role, bool]:
    """`operator`, or `operator+payloads`. Raises ConfigurationError."""
    word, plus, more = text.partition("+")
    if plus and more.strip() != PAYLOADS:
        raise ConfigurationError(f"{more!r} is no right: there is only {PAYLOADS}, as in {word}+{PAYLOADS}")
    return Role.of(word), bool(plus)


def written(role: Role, *, payloads: bool) -> str:
    """What `rights` reads."""
    return f"{role.word}+{PAYLOADS}" if payloads else role.word
