"""What a value may look like. Each kind reads a value as a file holds it, and text as a variable or a flag holds it.

A kind answers with the value as it was written, checked, or raises ValueError with what to write instead; whoever asked
knows the place. A URL is never quoted: it may hold a password.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Protocol, cast

from pillarbox import plugins
from pillarbox.core.clock import seconds
from pillarbox.core.errors import ConfigurationError
from pillarbox.core.text import size_in_bytes
from pillarbox.ops.moments import moment
from pillarbox.ops.settings.masking import ADDRESSES, misplaced_password
from pillarbox.relay.routing import per_second

_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


class Kind(Protocol):
    """Both verbs raise ValueError."""

    @property
    def word(self) -> str:
        """What the reference calls it."""
        ...

    def read(self, value: Any) -> Any: ...
    def parse(self, text: str) -> Any:
        """The value that a file would hold for this text."""
        ...


@dataclass(frozen=True, slots=True)
class Text:
    word: ClassVar[str] = "text"

    def read(self, value: Any) -> str:
        if not isinstance(value, str):
            raise ValueError("write text in quotes")
        return value

    def parse(self, text: str) -> str:
        return text


@dataclass(frozen=True, slots=True)
class Choice(Text):
    """One of a few words."""

    words: tuple[str, ...]

    @property
    def word(self) -> str:  # type: ignore[override] # what it is called depends on the words
        return ", ".join(f"`{word}`" for word in self.words)

    def read(self, value: Any) -> str:
        if value not in self.words:
            raise ValueError(f"write {_either(self.words)}")
        return str(value)


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number from `least` on."""

    least: int = 0
    word: ClassVar[str] = "whole number"

    def read(self, value: Any) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or value < self.least:
            raise ValueError(f"write a whole number, {self.least} or more")
        return value

    def parse(self, text: str) -> int:
        try:
            return int(text)
        except ValueError:
            raise ValueError(f"write a whole number, {self.least} or more") from None


@dataclass(frozen=True, slots=True)
class Number:
    word: ClassVar[str] = "number"

    def read(self, value: Any) -> float:
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            raise ValueError("write a number")
        return value

    def parse(self, text: str) -> float:
        try:
            return float(text)
        except ValueError:
            raise ValueError("write a number") from None


@dataclass(frozen=True, slots=True)
class Truth:
    word: ClassVar[str] = "`true`, `false`"

    def read(self, value: Any) -> bool:
        if not isinstance(value, bool):
            raise ValueError("write true or false")
        return value

    def parse(self, text: str) -> bool:
        if (word := text.strip().lower()) not in _TRUE + _FALSE:
            raise ValueError("write true or false")
        return word in _TRUE


@dataclass(frozen=True, slots=True)
class LedgerMode:
    """Whether there is a ledger, or one of two words."""

    words: ClassVar[tuple[str, ...]] = ("history", "at-most-once")
    word: ClassVar[str] = "`true`, `false`, `history`, `at-most-once`"

    def read(self, value: Any) -> bool | str:
        if isinstance(value, bool) or value in self.words:
            return cast(bool | str, value)
        raise ValueError(f"write true, false, {_either(self.words)}")

    def parse(self, text: str) -> bool | str:
        word = text.strip().lower()
        return word in _TRUE if word in _TRUE + _FALSE else self.read(word)


@dataclass(frozen=True, slots=True)
class Span:
    """A duration, or one of a few words. A bare number is refused: others count milliseconds under the same names."""

    words: tuple[str, ...] = ()

    @property
    def word(self) -> str:
        return ", ".join(["duration", *(f"`{word}`" for word in self.words)])

    def read(self, value: Any) -> str:
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            raise ValueError(f"a number has no unit; write for example {value}ms, {value}s or {value}h")
        if value not in self.words:
            try:
                seconds(value)
            except ConfigurationError:
                others = "".join(f', or "{word}"' for word in self.words)
                raise ValueError(f"write a duration, for example 500ms, 2s, 1h or 7 days{others}") from None
        return str(value)

    def parse(self, text: str) -> Any:
        return int(text) if text.isdecimal() else text


@dataclass(frozen=True, slots=True)
class Size:
    """A number of bytes from 1 on; `largest` as people write it."""

    largest: str | None = "64 MiB"
    word: ClassVar[str] = "size"

    def read(self, value: Any) -> str | int:
        bounds = "from 1 byte on" if self.largest is None else f"from 1 byte to {self.largest}"
        try:
            number = size_in_bytes(value, field="")
        except ConfigurationError:
            number = 0
        if number < 1 or (self.largest is not None and number > size_in_bytes(self.largest, field="")):
            raise ValueError(f"write a size {bounds}, for example 256 KiB, 1 MiB or 1048576")
        return value if isinstance(value, int) else str(value)

    def parse(self, text: str) -> str:
        return text


@dataclass(frozen=True, slots=True)
class Rate:
    word: ClassVar[str] = "rate"

    def read(self, value: Any) -> str:
        if not isinstance(value, str):
            raise ValueError("write a rate with its period, for example 500/s, 30/m or 1000/h")
        try:
            per_second(value)
        except ConfigurationError:
            raise ValueError("write a rate above zero, for example 500/s, 30/m or 1000/h") from None
        return value

    def parse(self, text: str) -> str:
        return text


@dataclass(frozen=True, slots=True)
class Listen(Text):
    """Where to listen: a host and a port."""

    word: ClassVar[str] = "host:port"

    def read(self, value: Any) -> str:
        found = re.fullmatch(r"(?:[\w.-]+|\[[0-9A-Fa-f:]+\]):(\d{1,5})", value) if isinstance(value, str) else None
        if found is None or int(found[1]) > 65535:
            raise ValueError("write host:port, for example 127.0.0.1:9464")
        return str(value)


@dataclass(frozen=True, slots=True)
class Moment(Text):
    """A time, or an age that is counted back from the start."""

    word: ClassVar[str] = "time or age"

    def read(self, value: Any) -> str:
        written = value.isoformat() if isinstance(value, datetime) else value
        try:
            moment(super(Moment, self).read(written))
        except (ValueError, ConfigurationError):
            raise ValueError("write a time such as 2026-11-30T09:00:00Z, or an age such as 1h") from None
        return str(written)


@dataclass(frozen=True, slots=True)
class Import(Text):
    """An object of the application."""

    word: ClassVar[str] = "MODULE:OBJECT"

    def read(self, value: Any) -> str:
        if not isinstance(value, str) or not re.fullmatch(r"[\w.]+:\w+", value):
            raise ValueError("write MODULE:OBJECT, for example shop.events:handlers")
        return value


@dataclass(frozen=True, slots=True)
class Url(Text):
    """An address of `what`, which may hold a password and is never quoted."""

    what: str
    group: str
    """Of the entry points that know a scheme."""
    examples: str
    word: ClassVar[str] = "URL"

    def read(self, value: Any) -> str:
        if not isinstance(value, str):
            raise ValueError(f"write a URL: {self.examples}")
        scheme, has_scheme, _ = value.partition("://")
        if not (has_scheme and plugins.is_registered(self.group, scheme)):
            # Without a scheme the text may be anything, a password included.
            named = f"{scheme}://" if has_scheme and re.fullmatch(r"[a-z][a-z0-9+.-]*", scheme) else "this text"
            raise ValueError(f"there is no {self.what} for {named}: use {self.examples}")
        if scheme in ADDRESSES and misplaced_password(value):
            raise ValueError(
                "user, password, host and port cannot be told apart; write the password's special characters in "
                "percent code (/ is %2F, @ is %40, # is %23, ? is %3F)"
            )
        return value


@dataclass(frozen=True, slots=True)
class Texts:
    """A list of texts; in a variable separated by commas."""

    word: ClassVar[str] = "list of text"

    def read(self, value: Any) -> tuple[str, ...]:
        if not isinstance(value, list | tuple) or not all(isinstance(one, str) for one in value):
            raise ValueError('write a list of texts, for example ["orders", "audit"]')
        return tuple(value)

    def parse(self, text: str) -> list[str]:
        return [part.strip() for part in text.split(",")]


@dataclass(frozen=True, slots=True)
class Pairs:
    """A table of names and values. No variable holds one."""

    texts: bool = True
    or_names: bool = False
    """A list of names is welcome, too."""

    @property
    def word(self) -> str:
        return ("list of text, or " if self.or_names else "") + ("table of text" if self.texts else "table")

    def read(self, value: Any) -> Any:
        if self.or_names and isinstance(value, list):
            return Texts().read(value)
        if not isinstance(value, Mapping) or (self.texts and not all(isinstance(one, str) for one in value.values())):
            raise ValueError(f"write a {self.word}")
        return dict(value)

    def parse(self, text: str) -> Any:
        raise ValueError("write it in the file: a table does not fit into a variable or a flag")


def _either(words: tuple[str, ...]) -> str:
    *most, last = (f'"{word}"' for word in words)
    return f"{', '.join(most)} or {last}"
