"""The kinds of values that settings have. A kind that accepts zero says what zero means."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, cast, get_args

from pillarbox.core.clock import Duration, seconds
from pillarbox.core.errors import ConfigurationError
from pillarbox.core.payload import size_in_bytes
from pillarbox.statements import Names

_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")
_DURATIONS = "for example 500ms, 2s, 1h or 7 days"
LARGEST = 2**63 - 1
"""What databases, brokers and floats can still represent."""


class Kind:
    """What the values of a setting look like. `check` and `read` raise ValueError, which says what to write."""

    __slots__ = ()

    @property
    def word(self) -> str:
        """The kind as the reference page calls it, with unit and bounds."""
        raise NotImplementedError

    def check(self, value: Any) -> None:
        """A value in Python."""
        raise NotImplementedError

    def read(self, value: Any) -> Any:
        """A value of a settings file."""
        self.check(value)
        return value

    def parse(self, text: str) -> Any:
        """The value that a settings file would hold for the text of a variable or a flag; `read` checks it."""
        return text


@dataclass(frozen=True, slots=True)
class Text(Kind):
    """Any text."""

    @property
    def word(self) -> str:
        return "text"

    def check(self, value: Any) -> None:
        if not isinstance(value, str):
            raise ValueError("write text in quotes")


@dataclass(frozen=True, slots=True)
class Choice(Kind):
    """One of a few words."""

    words: tuple[str, ...]

    @classmethod
    def of(cls, literal: Any) -> Self:
        """The words of a `Literal`."""
        return cls(get_args(literal))

    @property
    def word(self) -> str:
        return quoted(self.words)

    def check(self, value: Any) -> None:
        if value not in self.words:
            raise ValueError(f"write {either(self.words)}")


@dataclass(frozen=True, slots=True)
class Flag(Kind):
    """True or false."""

    @property
    def word(self) -> str:
        return "`true`, `false`"

    def check(self, value: Any) -> None:
        if not isinstance(value, bool):
            raise ValueError("write true or false")

    def parse(self, text: str) -> Any:
        return word in _TRUE if (word := text.strip().lower()) in _TRUE + _FALSE else text


@dataclass(frozen=True, slots=True)
class FlagOr(Choice):
    """True, false or one of a few words."""

    @property
    def word(self) -> str:
        return f"`true`, `false`, {super(FlagOr, self).word}"

    def check(self, value: Any) -> None:
        if not isinstance(value, bool) and value not in self.words:
            raise ValueError(f"write true, false or {' or '.join(map(repr, self.words))}")

    def parse(self, text: str) -> Any:
        return Flag().parse(text)


@dataclass(frozen=True, slots=True)
class Whole(Kind):
    """An integer from 1, or one of a few words. Zero is accepted where `zero` says what it means."""

    unit: str = "number"
    zero: str = ""
    words: tuple[str, ...] = ()

    @property
    def minimum(self) -> int:
        return 0 if self.zero else 1

    @property
    def word(self) -> str:
        return ", ".join([f"{self.unit}, {self.minimum} or more", *([quoted(self.words)] if self.words else [])])

    def check(self, value: Any) -> None:
        if isinstance(value, str) and value in self.words:
            return
        if not isinstance(value, int) or isinstance(value, bool) or value < self.minimum:
            raise ValueError(f"write an integer, {self.minimum} or more{_or(self.words)}")
        if value > LARGEST:
            raise ValueError(f"write an integer up to {LARGEST}{_or(self.words)}")

    def parse(self, text: str) -> Any:
        try:
            return int(text)
        except ValueError:
            return text


@dataclass(frozen=True, slots=True)
class Number(Kind):
    """A finite number from `minimum` on."""

    minimum: float

    @property
    def word(self) -> str:
        return f"number, {self.minimum:g} or more"

    def check(self, value: Any) -> None:
        known = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not known or not self.minimum <= value <= sys.float_info.max:  # an integer may be larger
            raise ValueError(f"write a number, {self.minimum:g} or more")

    def parse(self, text: str) -> Any:
        try:
            return float(text)
        except ValueError:
            return text


@dataclass(frozen=True, slots=True)
class Span(Kind):
    """A duration above zero, or one of a few words. Zero is accepted where `zero` says what it means.

    A settings file needs a unit: other outboxes count milliseconds under the same names.
    """

    words: tuple[str, ...] = ()
    zero: str = ""
    minimum: Duration | None = None
    maximum: Duration | None = None

    @property
    def word(self) -> str:
        return ", ".join([f"duration{self._bounds()}", *([quoted(self.words)] if self.words else [])])

    def _bounds(self) -> str:
        if self.minimum is not None:
            return f" from {self.minimum}" + ("" if self.maximum is None else f" to {self.maximum}")
        return "" if self.zero else " above zero"

    def check(self, value: Any) -> None:
        if isinstance(value, str) and value in self.words:
            return
        others = _or(self.words)
        try:
            length = seconds(value)
        except ConfigurationError:
            raise ValueError(f"write a duration, {_DURATIONS}{others}") from None
        least = 0.0 if self.minimum is None else seconds(self.minimum)
        most = float("inf") if self.maximum is None else seconds(self.maximum)
        if not least <= length <= most or (length == 0 and not self.zero):
            raise ValueError(f"write a duration{self._bounds()}, {_DURATIONS}{others}")

    def read(self, value: Any) -> Any:
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            raise ValueError(f"a number has no unit; write for example {value}ms, {value}s or {value}h")
        self.check(value)
        return value

    def parse(self, text: str) -> Any:
        return int(text) if text.isdecimal() and len(text) <= len(str(LARGEST)) else text


@dataclass(frozen=True, slots=True)
class ByteSize(Kind):
    """A number of bytes from 1 on."""

    maximum: str | None = None

    @property
    def word(self) -> str:
        return "size from 1 byte" if self.maximum is None else f"size from 1 byte to {self.maximum}"

    def check(self, value: Any) -> None:
        bounds = "from 1 byte" if self.maximum is None else f"from 1 byte to {self.maximum}"
        try:
            number = size_in_bytes(value, field="")
        except ConfigurationError:
            number = 0
        if number < 1 or (self.maximum is not None and number > size_in_bytes(self.maximum, field="")):
            raise ValueError(f"write a size {bounds}, for example 256 KiB, 1 MiB or 1048576")


@dataclass(frozen=True, slots=True)
class Identifier(Text):
    """A part of the names of tables: `prefix` or `schema`."""

    of: str

    def check(self, value: Any) -> None:
        super(Identifier, self).check(value)
        try:
            Names(**{self.of: value})
        except ConfigurationError as error:
            raise ValueError(str(error)) from None


@dataclass(frozen=True, slots=True)
class Texts(Kind):
    """A list of texts; in a variable separated by commas."""

    @property
    def word(self) -> str:
        return "list of text"

    def check(self, value: Any) -> None:
        if not isinstance(value, list | tuple) or not _are_texts(cast(Sequence[object], value)):
            raise ValueError('write a list of texts, for example ["orders", "audit"]')

    def read(self, value: Any) -> tuple[str, ...]:
        self.check(value)
        return tuple(value)

    def parse(self, text: str) -> list[str]:
        return [part.strip() for part in text.split(",")]


@dataclass(frozen=True, slots=True)
class Pairs(Kind):
    """A table of names and values. No variable holds one."""

    texts: bool = True
    or_names: bool = False
    """A list of names is accepted, too."""

    @property
    def word(self) -> str:
        return ("list of text, or " if self.or_names else "") + ("table of text" if self.texts else "table")

    def check(self, value: Any) -> None:
        if self.or_names and isinstance(value, list | tuple):
            Texts().check(value)
        elif not isinstance(value, Mapping) or (
            self.texts and not _are_texts(cast(Mapping[str, object], value).values())
        ):
            raise ValueError(f"write a {self.word}")

    def read(self, value: Any) -> Any:
        self.check(value)
        return dict(cast(Mapping[str, Any], value)) if isinstance(value, Mapping) else tuple(value)

    def parse(self, text: str) -> Any:
        raise ValueError("write it in the file: a table does not fit into a variable or a flag")


def quoted(words: tuple[str, ...]) -> str:
    """The words as the reference page lists them."""
    return ", ".join(f"`{word}`" for word in words)


def either(words: tuple[str, ...]) -> str:
    """The words as an error offers them."""
    *most, last = (f'"{word}"' for word in words)
    return f"{', '.join(most)} or {last}"


def _or(words: tuple[str, ...]) -> str:
    return "".join(f', or "{word}"' for word in words)


def _are_texts(values: Iterable[object]) -> bool:
    return all(isinstance(one, str) for one in values)
