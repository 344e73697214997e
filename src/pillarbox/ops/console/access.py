"""Users, roles and rights. Reading needs a login, actions need a role, and payloads need a right of their own."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from pillarbox.core.errors import ConfigurationError


class Role(IntEnum):
    """Each role includes the roles before it."""

    VIEWER = 1
    """Reads."""
    OPERATOR = 2
    """Retries, discards, pauses, resumes, replays, drains."""
    ADMIN = 3
    """Forces breakers, sets rate limits."""

    @property
    def word(self) -> str:
        return self.name.lower()

    @classmethod
    def of(cls, word: str) -> Role:
        """Parse the name of a role. Raises ConfigurationError."""
        try:
            return cls[word.strip().upper()]
        except KeyError:
            raise ConfigurationError(f"{word!r} is not a role: write viewer, operator or admin") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """A logged-in user. The audit log records actions under this name."""

    name: str
    role: Role = Role.VIEWER
    payloads: bool = False
    """May see payloads and headers."""


PAYLOADS = "payloads"


def parse_rights(text: str) -> tuple[Role, bool]:
    """Parse `operator` or `operator+payloads`. Raises ConfigurationError."""
    word, plus, more = text.partition("+")
    if plus and more.strip() != PAYLOADS:
        raise ConfigurationError(f"{more!r} is not a right: the only one is {PAYLOADS}, as in {word}+{PAYLOADS}")
    return Role.of(word), bool(plus)


def format_rights(role: Role, *, payloads: bool) -> str:
    """Format a role and a right as `parse_rights` reads them."""
    return f"{role.word}+{PAYLOADS}" if payloads else role.word
