"""The means to describe settings: a section is a dataclass, each field of which is a key or a further section.

The description is the only one: reading, `config show`, suggestions and the reference are all driven by it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields
from types import MappingProxyType
from typing import Any, Literal

from pillarbox.ops.settings.kinds import Kind

_NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One setting."""

    attribute: str
    kind: Kind
    doc: str
    default: Any
    required: bool = False
    secret: bool = False
    """Masked wherever it is shown, and read from a file if a variable with `_FILE` names one."""
    formerly: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    """What other outboxes call it, each with what to mind."""
    only_for: tuple[str, ...] = ()
    """The kinds of transport, body or policy that have this key; (): all of them."""

    @property
    def name(self) -> str:
        return self.attribute.removesuffix("_")  # `import` cannot be the name of a field


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A section within a section."""

    name: str
    section: type[Any]
    shape: Literal["one", "maybe", "named", "listed"]
    """Always there; there or None; any number by name; any number in order."""


def key(
    kind: Kind,
    doc: str,
    *,
    default: Any = MISSING,
    secret: bool = False,
    formerly: Mapping[str, str] = _NOTHING,
    only_for: tuple[str, ...] = (),
) -> Any:
    """A field that is a setting; one without default is required."""
    required = default is MISSING
    about = {"kind": kind, "doc": doc, "required": required, "secret": secret, "formerly": formerly}
    about |= {"only_for": only_for, "default": None if required else default}
    return field(default=None if required else default, repr=not secret, metadata={"key": about})


def part(section: type[Any]) -> Any:
    """A field that is a section of its own."""
    return field(default_factory=section, metadata={"part": (section, "one")})


def maybe(section: type[Any]) -> Any:
    """A field that is a section or None."""
    return field(default=None, metadata={"part": (section, "maybe")})


def named(section: type[Any]) -> Any:
    """A field that has sections by their names."""
    return field(default_factory=lambda: MappingProxyType({}), metadata={"part": (section, "named")})


def listed(section: type[Any]) -> Any:
    """A field that has sections in order."""
    return field(default=(), metadata={"part": (section, "listed")})


def keys_of(section: type[Any]) -> Mapping[str, Key]:
    """The settings of a section, by name."""
    found = [Key(attribute=one.name, **one.metadata["key"]) for one in fields(section) if "key" in one.metadata]
    return {one.name: one for one in found}


def parts_of(section: type[Any]) -> Mapping[str, Part]:
    """The sections of a section, by name."""
    found = [(one.name, *one.metadata["part"]) for one in fields(section) if "part" in one.metadata]
    return {name: Part(name=name, section=inner, shape=shape) for name, inner, shape in found}


def every_key(section: type[Any], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Key]]:
    """All settings with their places; `*` stands for a name, `[]` for any of a list."""
    for name, one in keys_of(section).items():
        yield (*path, name), one
    for name, inner in parts_of(section).items():
        place = {"named": (name, "*"), "listed": (f"{name}[]",)}.get(inner.shape, (name,))
        yield from every_key(inner.section, (*path, *place))
