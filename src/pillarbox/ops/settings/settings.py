"""All settings of one invocation: read, checked, ready to be built from."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path as File
from types import MappingProxyType
from typing import Any, Self, cast

from pillarbox.core.errors import SettingsError
from pillarbox.core.payload import payload_limit
from pillarbox.ops.settings import relations
from pillarbox.ops.settings.console import ConsoleSettings
from pillarbox.ops.settings.origin import DEFAULT, Given, Origin, Path, SettingEntry, dotted
from pillarbox.ops.settings.reading import Reader
from pillarbox.ops.settings.sections import RelaySettings, StoreSettings
from pillarbox.ops.settings.sources import FAILPOINT, from_environment, from_flags, read_file, usual_store
from pillarbox.ops.settings.tables import named
from pillarbox.ops.settings.transports import DestinationSettings, TransportSettings
from pillarbox.record.options import RecordOptions
from pillarbox.relay.config import PRESETS
from pillarbox.relay.routing import Route
from pillarbox.retry_policies import ExponentialBackoff
from pillarbox.settings import listed, part, settings_of
from pillarbox.telemetry.log_lines import LogOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings: each field is a table of the settings file."""

    store: StoreSettings = part(StoreSettings)
    record: RecordOptions = part(RecordOptions)
    relay: RelaySettings = part(RelaySettings)
    transports: Mapping[str, TransportSettings] = named(TransportSettings)
    destinations: Mapping[str, DestinationSettings] = named(DestinationSettings)
    routes: tuple[Route, ...] = listed(Route)
    console: ConsoleSettings = part(ConsoleSettings)
    logging: LogOptions = part(LogOptions)
    failpoint: str = ""
    """`name:count`: where a relay under test is killed; '': nowhere."""
    file: str = field(default="", repr=False, compare=False)
    """What they were read from, as errors call it; '': nothing."""
    entries: tuple[SettingEntry, ...] = field(default=(), repr=False, compare=False)
    """Every setting in force, in the order of the description, with its origin."""
    notes: tuple[str, ...] = field(default=(), repr=False, compare=False)
    """What works, but may surprise."""

    @classmethod
    def load(
        cls,
        file: File | None = None,
        environment: Mapping[str, str] = os.environ,
        flags: Mapping[str, str] | None = None,
        spelt: Mapping[str, str] | None = None,
    ) -> Self:
        """Flags win over the environment, that over the file, that over a preset and DATABASE_URL, these over the
        defaults.

        `flags` has texts by dotted names: {"relay.batch_size": "100"}; `spelt` says what errors call one that was not
        written as `--set`. Raises SettingsError, a ConfigurationError.
        """
        written, name = ({}, "") if file is None else (read_file(file), str(file))
        return cls.of(written, name, environment, flags, spelt)

    @classmethod
    def of(
        cls,
        written: Mapping[str, Any],
        name: str,
        environment: Mapping[str, str] = os.environ,
        flags: Mapping[str, str] | None = None,
        spelt: Mapping[str, str] | None = None,
        *,
        fixed: Mapping[Path, Given] = MappingProxyType({}),
    ) -> Self:
        """`load` with what a file would hold; errors call it `name`.

        fixed: values that are decided elsewhere, so that it is an error to set them here. Raises SettingsError.
        """
        wrong: list[str] = []
        above = from_environment(cls, environment, written, wrong.append)
        above |= from_flags(cls, flags or {}, spelt or {}, wrong.append)
        wrong += _set_twice(fixed, above, written, name)
        above |= fixed
        below = _preset(above, written) | usual_store(environment)
        reader = Reader(file=name, above=above, below=below, problems=wrong)
        read: Self = reader.read(cls, written)
        wrong = wrong or list(relations.problems(read, reader.entries))
        if wrong:
            raise SettingsError(wrong)
        return replace(
            read,
            store=replace(read.store, max_payload=payload_limit(read.record.max_payload)),
            failpoint=environment.get(FAILPOINT, ""),
            file=name,
            entries=relations.in_force(reader.entries.values(), read),
            notes=tuple(relations.notes(read, reader.entries)),
        )

    def transport_of(self, destination: str) -> TransportSettings | None:
        """The transport that a destination names, or the only one."""
        name = self.destinations[destination].transport
        if name is None:
            return next(iter(self.transports.values())) if len(self.transports) == 1 else None
        return self.transports.get(name)

    def called(self, *path: str) -> str:
        """A table or a key as its author wrote it, for errors that are found later."""
        within = (entry for entry in self.entries if entry.path[: len(path)] == path and entry.written)
        origin = next((entry.origin for entry in within), None)
        return dotted(path) if origin is None else origin.calls(path)

    def origin(self, *path: str) -> Origin:
        """Where the value of a key comes from."""
        return next((entry.origin for entry in self.entries if entry.path == path), DEFAULT)


def _set_twice(
    fixed: Mapping[Path, Given], above: Mapping[Path, Given], written: Mapping[str, Any], name: str
) -> Iterator[str]:
    for path, given in fixed.items():
        table, *rest = path
        found: object = written.get(table)
        for key in rest:
            found = cast("Mapping[str, Any]", found).get(key) if isinstance(found, Mapping) else None
        if path in above:
            yield f"{above[path].origin.name} is set, but {given.origin.name} decides on it: leave it out"
        elif found is not None:
            yield f"{Origin('file', name).calls(path)} is set, but {given.origin.name} decides on it: remove it"


def _preset(above: Mapping[Path, Given], written: Mapping[str, Any]) -> dict[Path, Given]:
    relay = written.get("relay")
    table = cast("Mapping[str, Any]", relay if isinstance(relay, Mapping) else {})
    given = above.get(("relay", "preset"))
    name = given.value if given is not None else table.get("preset")
    if not isinstance(name, str) or name not in PRESETS:
        return {}
    preset, origin = PRESETS[name], Origin("preset", name)
    values: dict[Path, Any] = {("relay", key): getattr(preset.config, key) for key in ("poll_interval", "batch_size")}
    retry = settings_of(ExponentialBackoff)
    values |= {("relay", "retry", key.name): getattr(preset.retry, key.attribute) for key in retry}
    return {path: Given(value, origin) for path, value in values.items()}
