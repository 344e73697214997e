"""Reading: of each setting the first value that is written anywhere, checked by its definition, its origin kept.

Reading does not stop at the first mistake: all problems are reported at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, cast

from pillarbox.core.errors import ConfigurationError
from pillarbox.ops.settings.masking import masked_value
from pillarbox.ops.settings.origin import DEFAULT, Given, Origin, Path, SettingEntry, dotted
from pillarbox.ops.settings.suggesting import nearest_key
from pillarbox.ops.settings.tables import Part, inlined_of, keys_of, parts_of
from pillarbox.settings import InvalidSettingError, Setting


@dataclass(slots=True, kw_only=True)
class Reader:
    """Reads one root section. `problems` and `entries` grow as it goes."""

    file: str
    above: Mapping[Path, Given]
    """What takes precedence over the file: flags and environment."""
    below: Mapping[Path, Given]
    """What the file takes precedence over: a preset."""
    root: type[Any] = object
    problems: list[str] = field(default_factory=list)
    entries: dict[Path, SettingEntry] = field(default_factory=dict)

    def read(self, root: type[Any], written: Mapping[str, Any]) -> Any:
        """The root section; None if there are problems."""
        self.root = root
        return self._section(root, written, ())

    def _section(self, section: type[Any], written: Any, path: Path) -> Any:
        before = len(self.problems)
        if not isinstance(written, Mapping):
            self._add_problem(
                f"{dotted(path)} in {self.file} is not a table: write [{dotted(path)}] and its keys below it"
            )
            return None
        table = cast("Mapping[str, Any]", written)
        for name in table:
            if name not in keys_of(section) and name not in parts_of(section):
                place = (*path, name)
                near = nearest_key(self.root, place, section)
                self._add_problem(f"{dotted(place)} in {self.file} is not a setting{near}")
        values: dict[str, dict[str, Any]] = {"": {}, **{holder: {} for holder in inlined_of(section)}}
        for name, key in keys_of(section).items():
            value = self._value(key, table, (*path, name))
            for holder in key.holders:
                values[holder][key.attribute] = value
        for name, inner in parts_of(section).items():
            values[inner.holder][name] = self._part(inner, table, path)
        if len(self.problems) > before:
            return None
        return self._made(section, values, path)

    def _made(self, section: type[Any], values: dict[str, dict[str, Any]], path: Path) -> Any:
        """The section, made of values that are fine one by one; their relations are checked by the classes."""
        try:
            held = {holder: inner(**values[holder]) for holder, inner in inlined_of(section).items()}
            return section(**values[""], **held)
        except InvalidSettingError as error:
            self._add_problem(error.called(lambda name: self._called((*path, name))))
        except ConfigurationError as error:
            self._add_problem(f"{dotted(path)} in {self.file}: {error}")
        return None

    def _called(self, path: Path) -> str:
        return self.entries[path].called if path in self.entries else dotted(path)

    def _value(self, key: Setting, written: Mapping[str, Any], path: Path) -> Any:
        given = self.above.get(path)
        if given is None and key.name in written:
            given = Given(written[key.name], Origin("file", self.file))
        if given is None:
            given = self.below.get(path)
        if given is None:
            if key.required:
                self._add_problem(f"{dotted(path)} is missing in {self.file}: {key.help}")
            self._add_entry(key, path, key.default, DEFAULT)
            return key.default
        try:
            value = key.kind.read(key.kind.parse(given.value) if given.is_text else given.value)
        except ValueError as hint:
            # A URL in the wrong place has its password with it.
            what = "" if key.secret or "://" in str(given.value) else f" is {given.value!r}"
            self._add_problem(f"{given.origin.calls(path)}{what}: {hint}")
            return key.default
        self._add_entry(key, path, value, given.origin)
        return value

    def _part(self, inner: Part, written: Mapping[str, Any], path: Path) -> Any:
        place = (*path, inner.name)
        found = written.get(inner.name)
        match inner.shape:
            case "one":
                return self._section(inner.section, {} if found is None else found, place)
            case "maybe":
                return None if found is None else self._section(inner.section, found, place)
            case "named":
                return self._named(inner.section, {} if found is None else found, place)
            case "listed":
                return self._listed(inner.section, () if found is None else found, place)

    def _named(self, section: type[Any], written: Any, path: Path) -> Mapping[str, Any]:
        if not isinstance(written, Mapping):
            self._add_problem(f"{dotted(path)} in {self.file} is not a table: write [{dotted(path)}.NAME]")
            return {}
        table = cast("Mapping[str, Any]", written)
        names = dict.fromkeys([*table, *(above[len(path)] for above in self.above if above[: len(path)] == path)])
        return MappingProxyType({name: self._section(section, table.get(name, {}), (*path, name)) for name in names})

    def _listed(self, section: type[Any], written: Any, path: Path) -> tuple[Any, ...]:
        if not isinstance(written, Sequence) or isinstance(written, str):
            self._add_problem(f"{dotted(path)} in {self.file} is not a list: write [[{dotted(path)}]] for each")
            return ()
        *before, name = path
        return tuple(
            self._section(section, one, (*before, f"{name}[{at}]"))
            for at, one in enumerate(cast("Sequence[object]", written))
        )

    def _add_entry(self, key: Setting, path: Path, value: Any, origin: Origin) -> None:
        shown = masked_value(value) if key.secret else value
        self.entries[path] = SettingEntry(path=path, key=key, shown=shown, origin=origin)

    def _add_problem(self, problem: str) -> None:
        self.problems.append(problem)
