"""The definition of a setting: kind, unit, default, bounds and help, on the dataclass field that holds the value.

Everything else derives from these definitions: the check when a value is made (`check_settings`), the keys of
`pillarbox.toml`, the environment variables, the docstring of the class (`documented`) and the reference page. A kind
that accepts zero says what zero means.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from types import MappingProxyType
from typing import Any, ClassVar, Protocol, Self, TypeVar, get_args

from pillarbox.core.clock import Duration, seconds
from pillarbox.core.errors import ConfigurationError
from pillarbox.core.text import size_in_bytes

_NOTHING: Mapping[str, str] = MappingProxyType({})
_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")
_DURATIONS = "for example 500ms, 2s, 1h or 7 days"
_Class = TypeVar("_Class", bound=type)


class Kind(Protocol):
    """What the values of a setting look like. `check` and `read` raise ValueError, which says what to write."""

    @property
    def word(self) -> str:
        """The kind as the reference page calls it, with unit and bounds."""
        ...

    def check(self, value: Any) -> None:
        """A value in Python."""
        ...

    def read(self, value: Any) -> Any:
        """A value of a settings file."""
        ...

    def parse(self, text: str) -> Any:
        """The value that a settings file would hold for the text of a variable or a flag; `read` checks it."""
        ...


@dataclass(frozen=True, slots=True)
class Text:
    """Any text."""

    word: ClassVar[str] = "text"

    def check(self, value: Any) -> None:
        if not isinstance(value, str):
            raise ValueError("write text in quotes")

    def read(self, value: Any) -> Any:
        self.check(value)
        return value

    def parse(self, text: str) -> Any:
        return text


@dataclass(frozen=True, slots=True)
class Choice(Text):
    """One of a few words."""

    words: tuple[str, ...]

    @classmethod
    def of(cls, literal: Any) -> Self:
        """The words of a `Literal`."""
        return cls(get_args(literal))

    @property
    def word(self) -> str:  # type: ignore[override] # the words decide
        return quoted(self.words)

    def check(self, value: Any) -> None:
        if value not in self.words:
            raise ValueError(f"write {either(self.words)}")


@dataclass(frozen=True, slots=True)
class Flag(Text):
    """True or false."""

    word: ClassVar[str] = "`true`, `false`"

    def check(self, value: Any) -> None:
        if not isinstance(value, bool):
            raise ValueError("write true or false")

    def parse(self, text: str) -> Any:
        return word in _TRUE if (word := text.strip().lower()) in _TRUE + _FALSE else text


@dataclass(frozen=True, slots=True)
class Whole(Text):
    """A whole number, from 1 on, or from 0 on where `zero` says what that means."""

    unit: str = "number"
    zero: str = ""

    @property
    def minimum(self) -> int:
        return 0 if self.zero else 1

    @property
    def word(self) -> str:  # type: ignore[override] # unit and bound decide
        return f"{self.unit}, {self.minimum} or more"

    def check(self, value: Any) -> None:
        if not isinstance(value, int) or isinstance(value, bool) or value < self.minimum:
            raise ValueError(f"write a whole number, {self.minimum} or more")

    def parse(self, text: str) -> Any:
        try:
            return int(text)
        except ValueError:
            return text


@dataclass(frozen=True, slots=True)
class Number(Text):
    """A finite number from `minimum` on."""

    minimum: float

    @property
    def word(self) -> str:  # type: ignore[override] # the bound decides
        return f"number, {self.minimum:g} or more"

    def check(self, value: Any) -> None:
        known = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not known or not self.minimum <= value < float("inf"):
            raise ValueError(f"write a number, {self.minimum:g} or more")

    def parse(self, text: str) -> Any:
        try:
            return float(text)
        except ValueError:
            return text


@dataclass(frozen=True, slots=True)
class Span(Text):
    """A duration above zero, or one of a few words. Zero is accepted where `zero` says what it means.

    A settings file needs a unit: other outboxes count milliseconds under the same names.
    """

    words: tuple[str, ...] = ()
    zero: str = ""
    minimum: Duration | None = None
    maximum: Duration | None = None

    @property
    def word(self) -> str:  # type: ignore[override] # words and bounds decide
        return ", ".join([f"duration{self._bounds()}", *([quoted(self.words)] if self.words else [])])

    def _bounds(self) -> str:
        if self.minimum is not None:
            return f" from {self.minimum}" + ("" if self.maximum is None else f" to {self.maximum}")
        return "" if self.zero else " above zero"

    def check(self, value: Any) -> None:
        if isinstance(value, str) and value in self.words:
            return
        others = "".join(f', or "{word}"' for word in self.words)
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
        return int(text) if text.isdecimal() else text


@dataclass(frozen=True, slots=True)
class ByteSize(Text):
    """A number of bytes from 1 on."""

    maximum: str | None = None

    @property
    def word(self) -> str:  # type: ignore[override] # the bound decides
        return "size" if self.maximum is None else f"size up to {self.maximum}"

    def check(self, value: Any) -> None:
        bounds = "from 1 byte" if self.maximum is None else f"from 1 byte to {self.maximum}"
        try:
            number = size_in_bytes(value, field="")
        except ConfigurationError:
            number = 0
        if number < 1 or (self.maximum is not None and number > size_in_bytes(self.maximum, field="")):
            raise ValueError(f"write a size {bounds}, for example 256 KiB, 1 MiB or 1048576")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One setting, as its field defines it."""

    attribute: str
    kind: Kind
    help: str
    """What it does, in sentences. Unit, default and the meaning of zero come from `kind` and `default`."""
    default: Any
    required: bool = False
    secret: bool = False
    """Masked in output; a variable with `_FILE` may name a file that holds the value."""
    formerly: Mapping[str, str] = field(default_factory=dict, hash=False)
    """What other outboxes call it → what differs there."""
    only_for: tuple[str, ...] = ()
    """The kinds of transport, body or retry policy that have this setting; (): all of them."""
    holder: str = ""
    """The attribute of a section that holds it, for a setting of an inlined class."""

    @property
    def name(self) -> str:
        return self.attribute.removesuffix("_")  # `import` cannot be the name of a field

    @property
    def means(self) -> str:
        """The help, what zero means, and where the setting applies."""
        kind = self.kind
        zero = f" `{'0' if isinstance(kind, Whole) else '0s'}`: {text}." if (text := getattr(kind, "zero", "")) else ""
        only = f" ({' and '.join(self.only_for)} only)" if self.only_for else ""
        return f"{self.help}{zero}{only}"


class SettingError(ConfigurationError):
    """A value or a relation of values that cannot work.

    The template names settings by their attributes: `{lease}` stands for the name, `{lease.value}` for the value. In
    Python the name is `RelayConfig.lease`; `called` writes the names as the reader of the error knows them.
    """

    def __init__(self, owner: object, template: str, **texts: object) -> None:
        self._template, self._texts = template, texts
        self._values = {one.name: getattr(owner, one.name) for one in fields(owner)}  # type: ignore[arg-type]
        super().__init__(self.called(lambda name: f"{type(owner).__name__}.{name}"))

    def called(self, name_of: Callable[[str], str]) -> str:
        """The message with the names of `name_of`."""
        named = {name: _Named(name_of(name), value) for name, value in self._values.items()}
        return self._template.format(**self._texts, **named)


class _Named(str):
    """A setting's name, with its value."""

    value: object

    def __new__(cls, name: str, value: object) -> Self:
        made = super().__new__(cls, name)
        made.value = value
        return made


def about(
    kind: Kind,
    help: str,
    *,
    secret: bool = False,
    formerly: Mapping[str, str] = _NOTHING,
    only_for: tuple[str, ...] = (),
) -> dict[str, Any]:
    """The metadata of a field that is a setting: `field(metadata=about(…))` is one without default."""
    return {"setting": {"kind": kind, "help": help, "secret": secret, "formerly": formerly, "only_for": only_for}}


def setting(default: Any, kind: Kind, help: str, *, secret: bool = False, **more: Any) -> Any:
    """A field that is a setting."""
    return field(default=default, repr=not secret, metadata=about(kind, help, secret=secret, **more))


def part(section: type[Any]) -> Any:
    """A field that is a group of settings, a table of its own in a settings file."""
    return field(default_factory=section, metadata={"part": (section, "one")})


def maybe(section: type[Any]) -> Any:
    """A field that is a group of settings or None."""
    return field(default=None, metadata={"part": (section, "maybe")})


def listed(section: type[Any]) -> Any:
    """A field that has groups of settings in order."""
    return field(default=(), metadata={"part": (section, "listed")})


def settings_of(owner: type[Any]) -> tuple[Setting, ...]:
    """The settings that a dataclass defines."""
    return tuple(_defined(one) for one in fields(owner) if "setting" in one.metadata)


def check_settings(owner: Any) -> None:
    """Raise SettingError for the first value that its definition refuses."""
    for one in settings_of(type(owner)):
        value = getattr(owner, one.attribute)
        if value is None and one.default is None:
            continue
        try:
            one.kind.check(value)
        except ValueError as hint:
            is_value = "" if one.secret else f" is {{{one.attribute}.value!r}}"
            raise SettingError(owner, f"{{{one.attribute}}}{is_value}: {{hint}}", hint=hint) from None


def documented(owner: _Class) -> _Class:
    """Add every setting to the docstring of a dataclass: kind, default, meaning."""
    if owner.__doc__ is not None:
        each = settings_of(owner)
        lines = [f"    {one.name}: {one.means} ({one.kind.word}; default {one.default!r})" for one in each]
        owner.__doc__ = "\n".join([f"{owner.__doc__}\n\n    Settings:", *lines])
    return owner


def quoted(words: tuple[str, ...]) -> str:
    """The words as the reference page lists them."""
    return ", ".join(f"`{word}`" for word in words)


def either(words: tuple[str, ...]) -> str:
    """The words as an error offers them."""
    *most, last = (f'"{word}"' for word in words)
    return f"{', '.join(most)} or {last}"


def _defined(one: Field[Any]) -> Setting:
    factory = one.default_factory
    default = one.default if factory is MISSING else factory()
    required = default is MISSING
    return Setting(
        attribute=one.name, default=None if required else default, required=required, **one.metadata["setting"]
    )
