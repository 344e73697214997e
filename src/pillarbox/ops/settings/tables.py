"""The tables of a settings file: a section is a dataclass whose fields are settings or further sections.

Most settings are those of the library's own dataclasses: a section holds such a class (`part`, `maybe`, `listed`),
spreads its settings over its own table (`inlined`), or takes over one of them (`same_as`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from pillarbox.settings import Setting, settings_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A section within a section."""

    name: str
    section: type[Any]
    shape: Literal["one", "maybe", "named", "listed"]
    """Always there; there or None; any number by name; any number in order."""
    holder: str = ""
    """The inlined field that holds it; '': the section itself."""
    only_for: tuple[str, ...] = ()
    """The kinds of transport that have this section; (): all of them."""


def named(section: type[Any]) -> Any:
    """A field that has sections by their names."""
    return field(default_factory=lambda: MappingProxyType[str, Any]({}), metadata={"part": (section, "named")})


def inlined(section: type[Any], *, only_for: tuple[str, ...] = ()) -> Any:
    """A field whose settings are written in the table of the section that holds it.

    Several inlined classes may have the same setting: then it is defined alike in all of them, and written once.
    """
    return field(default_factory=section, metadata={"inlined": Inlined(section, only_for)})


class Inlined(NamedTuple):
    """A class whose settings are written in the table of another section."""

    section: type[Any]
    only_for: tuple[str, ...]


def same_as(owner: type[Any], name: str, *, only_for: tuple[str, ...] = ()) -> Any:
    """A field with the definition of a field of the library; one without a plain default is None here."""
    [one] = (one for one in fields(owner) if one.name == name)
    default = None if one.default is MISSING else one.default
    return field(default=default, metadata={"setting": one.metadata["setting"] | {"only_for": only_for}})


def keys_of(section: type[Any]) -> Mapping[str, Setting]:
    """The settings of a section, by name."""
    own = {one.attribute: one for one in settings_of(section)}
    found: dict[str, Setting] = {}
    for one in fields(section):
        if one.name in own:
            found[own[one.name].name] = own[one.name]
        elif "inlined" in one.metadata:
            inner: Inlined = one.metadata["inlined"]
            for each in settings_of(inner.section):
                held = replace(each, holders=(one.name,), only_for=inner.only_for)
                found[each.name] = _merged(found[each.name], held) if each.name in found else held
    return found


def _merged(one: Setting, other: Setting) -> Setting:
    """A setting that several inlined classes have."""
    both = replace(one, holders=one.holders + other.holders, only_for=one.only_for + other.only_for)
    if replace(other, holders=both.holders, only_for=both.only_for) != both:
        raise TypeError(f"{one.holders[0]}.{one.name} and {other.holders[0]}.{other.name} are defined differently")
    return both


def parts_of(section: type[Any]) -> Mapping[str, Part]:
    """The sections of a section, by name."""
    found: list[Part] = []
    for one in fields(section):
        if "part" in one.metadata:
            inner, shape = one.metadata["part"]
            found.append(Part(name=one.name, section=inner, shape=shape))
        elif "inlined" in one.metadata:
            held: Inlined = one.metadata["inlined"]
            each_of = parts_of(held.section).values()
            found += (replace(each, holder=one.name, only_for=held.only_for) for each in each_of)
    return {one.name: one for one in found}


def inlined_of(section: type[Any]) -> Mapping[str, type[Any]]:
    """The classes whose settings a section spreads over its table, by attribute."""
    return {one.name: one.metadata["inlined"].section for one in fields(section) if "inlined" in one.metadata}


def every_key(section: type[Any], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Setting]]:
    """All settings with their places; `*` stands for a name, `[]` for any of a list."""
    for name, one in keys_of(section).items():
        yield (*path, name), one
    for name, inner in parts_of(section).items():
        place = {"named": (name, "*"), "listed": (f"{name}[]",)}.get(inner.shape, (name,))
        yield from every_key(inner.section, (*path, *place))
