"""The definition of a setting: kind, unit, default, bounds and help, on the dataclass field that holds the value.

Everything else derives from these definitions: the check when a value is made (`check_settings`), the keys of
`pillarbox.toml`, the environment variables, the docstring of the class (`documented`) and the reference page. A kind
that accepts zero says what zero means.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from types import MappingProxyType
from typing import Any, Self, TypeVar

from pillarbox.core.errors import ConfigurationError
from pillarbox.settings.kinds import Kind, Whole

_NOTHING: Mapping[str, str] = MappingProxyType({})
_Class = TypeVar("_Class", bound=type)


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
    formerly: Mapping[str, str] = field(default_factory=lambda: _NOTHING, hash=False)
    """What other outboxes call it → what differs there."""
    only_for: tuple[str, ...] = ()
    """The kinds of transport, body or retry policy that have this setting; (): all of them."""
    holders: tuple[str, ...] = ("",)
    """The attributes of a section that hold it, for a setting of inlined classes; '': the section itself."""

    @property
    def name(self) -> str:
        return self.attribute.removesuffix("_")  # `import` cannot be the name of a field

    @property
    def means(self) -> str:
        """The help, what zero means, and where the setting applies."""
        kind = self.kind
        zero = f" `{'0' if isinstance(kind, Whole) else '0s'}`: {text}." if (text := getattr(kind, "zero", "")) else ""
        only = f" ({', '.join(self.only_for)} only)" if self.only_for else ""
        return f"{self.help}{zero}{only}"


class InvalidSettingError(ConfigurationError):
    """A value or a relation of values that cannot work.

    The template names settings by their attributes: `{lease}` stands for the name, `{lease.value}` for the value. In
    Python the name is `RelayConfig.lease`; `called` writes the names as the reader of the error knows them.
    """

    def __init__(self, owner: object, template: str, **texts: object) -> None:
        self._template, self._texts = template, texts
        self._values = {one.name: getattr(owner, one.name) for one in fields(owner) if one.init}  # type: ignore[arg-type]
        super().__init__(self.called(lambda name: f"{python_name(type(owner))}.{name}"))

    def called(self, name_of: Callable[[str], str]) -> str:
        """The message with the names of `name_of`."""
        named = {name: _Named(name_of(name), value) for name, value in self._values.items()}
        return self._template.format(**self._texts, **named)


def python_name(owner: type[Any]) -> str:
    """What users call a class: `Outbox`, where its arguments are defined by a class of their own."""
    return str(getattr(owner, "python_name", owner.__name__))


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


def check_settings(owner: object) -> None:
    """Raise InvalidSettingError for the first value that its definition refuses."""
    for one in settings_of(type(owner)):
        value = getattr(owner, one.attribute)
        if value is None and one.default is None:
            continue
        try:
            one.kind.check(value)
        except ValueError as hint:
            is_value = "" if one.secret else f" is {{{one.attribute}.value!r}}"
            raise InvalidSettingError(owner, f"{{{one.attribute}}}{is_value}: {{hint}}", hint=hint) from None


def documented(owner: _Class) -> _Class:
    """Add every setting to the docstring of a dataclass: kind, default, meaning."""
    if owner.__doc__ is not None:
        each = settings_of(owner)
        lines = [f"    {one.name}: {one.means} ({one.kind.word}; default {one.default!r})" for one in each]
        owner.__doc__ = "\n".join([f"{owner.__doc__}\n\n    Settings:", *lines])
    return owner


def _defined(one: Field[Any]) -> Setting:
    factory = one.default_factory
    default = one.default if factory is MISSING else factory()
    required = default is MISSING
    return Setting(
        attribute=one.name, default=None if required else default, required=required, **one.metadata["setting"]
    )
