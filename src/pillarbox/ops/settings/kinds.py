"""The kinds of values that only a settings file has; `pillarbox.settings` has those that the library shares.

An error says what to write instead; the caller knows the place. A URL is never quoted: it may hold a password.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pillarbox import schemes
from pillarbox.core.errors import ConfigurationError
from pillarbox.database_urls import plain_url
from pillarbox.ops.settings.masking import ADDRESSES, misplaced_password
from pillarbox.ops.times import parse_time
from pillarbox.settings import Text

SHORTEST_SECRET = 16
"""Characters."""


@dataclass(frozen=True, slots=True)
class Listen(Text):
    """Where to listen: a host and a port."""

    @property
    def word(self) -> str:
        return "host:port"

    def check(self, value: Any) -> None:
        found = re.fullmatch(r"(?:[\w.-]+|\[[0-9A-Fa-f:]+\]):(\d{1,5})", value) if isinstance(value, str) else None
        if found is None or int(found[1]) > 65535:
            raise ValueError("write host:port, for example 127.0.0.1:9464")


@dataclass(frozen=True, slots=True)
class Moment(Text):
    """A time, or an age that is counted back from the start."""

    @property
    def word(self) -> str:
        return "time or age"

    def read(self, value: Any) -> str:
        written = value.isoformat() if isinstance(value, datetime) else value
        self.check(written)
        return str(written)

    def check(self, value: Any) -> None:
        try:
            super(Moment, self).check(value)
            parse_time(value)
        except (ValueError, ConfigurationError):
            raise ValueError("write a time such as 2026-11-30T09:00:00Z, or an age such as 1h") from None


@dataclass(frozen=True, slots=True)
class Import(Text):
    """An object of the application."""

    @property
    def word(self) -> str:
        return "MODULE:OBJECT"

    def check(self, value: Any) -> None:
        if not isinstance(value, str) or not re.fullmatch(r"[\w.]+:\w+", value):
            raise ValueError("write MODULE:OBJECT, for example shop.events:handlers")


@dataclass(frozen=True, slots=True)
class Url(Text):
    """An address of `what`, which may hold a password and is never quoted."""

    what: str
    group: str
    """The group of entry points that know a scheme."""
    examples: str

    @property
    def word(self) -> str:
        return "URL"

    def read(self, value: Any) -> Any:
        self.check(value)
        return plain_url(value)

    def check(self, value: Any) -> None:
        if not isinstance(value, str):
            raise ValueError(f"write a URL: {self.examples}")
        scheme, has_scheme, _ = plain_url(value).partition("://")
        if not (has_scheme and schemes.is_registered(self.group, scheme)):
            # Without a scheme the text may be anything, a password included.
            known = has_scheme and re.fullmatch(r"[a-z][a-z0-9+.-]*", scheme)
            raise ValueError(
                f"there is no {self.what} for {f'{scheme}://' if known else 'this text'}: use {self.examples}"
            )
        if scheme in ADDRESSES and misplaced_password(value):
            raise ValueError(
                "user, password, host and port cannot be told apart; write the password's special characters in "
                "percent code (/ is %2F, @ is %40, # is %23, ? is %3F)"
            )


@dataclass(frozen=True, slots=True)
class Secret(Text):
    """A key that an attacker cannot guess."""

    def check(self, value: Any) -> None:
        if not isinstance(value, str) or len(value) < SHORTEST_SECRET:
            raise ValueError(f"write at least {SHORTEST_SECRET} characters that an attacker cannot guess")


@dataclass(frozen=True, slots=True)
class PathPrefix(Text):
    """What paths begin with; empty: nothing."""

    def check(self, value: Any) -> None:
        if not isinstance(value, str) or not re.fullmatch(r"(?:/[\w.~-]+)*", value):
            raise ValueError("write a path that begins with a slash and ends with none, for example /outbox")
