"""What a drill runs on: its own tables and its own queue on the user's servers, under names that nothing else has."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

from pillarbox.core.errors import ConfigurationError
from pillarbox.ops.settings import Settings
from pillarbox.ops.settings.sources import find_file
from pillarbox.ops.wiring import open_drill_queue, with_scratch_store
from pillarbox.plugins import DrillQueue, ScratchStore

LEASE = 4.0
BATCH_SIZE = 100
BATCHES_IN_FLIGHT = 2
EVENT_TYPE = "drill.event"
CONSUMER = "drill"
"""Name of the consumer in the inbox, and of the handler."""


def new_name() -> str:
    """Return a name that no other drill has."""
    return f"drill_{uuid4().hex[:8]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsSource:
    """Where the settings come from, so that each process of a drill can load the same ones."""

    config: str | None = None
    flags: Mapping[str, str] = field(default_factory=dict[str, str])
    spelt: Mapping[str, str] = field(default_factory=dict[str, str])

    def load(self) -> Settings:
        """Load the settings. Raises ConfigurationError."""
        return Settings.load(find_file(self.config, os.environ), os.environ, self.flags, self.spelt)


@dataclass(frozen=True, slots=True, kw_only=True)
class DrillTarget:
    """The settings with the tables of the drill, and the transport to send to, if one supports drills."""

    settings: Settings
    store: ScratchStore
    name: str
    """Of the queue; the names of tables begin with it."""
    transport: str = ""
    """Name of the transport in the settings; empty: a handler in the relay's process."""

    @classmethod
    def of(cls, settings: Settings, *, name: str, transport: str = "") -> Self:
        """Replace store and relay settings by those of the drill. Raises ConfigurationError if they do not fit."""
        brokers = [each for each, given in settings.transports.items() if given.plugin.drills]
        if transport and transport not in brokers:
            known = f"use {' or '.join(brokers)}" if brokers else "the settings have none"
            raise ConfigurationError(f"--transport {transport}: no broker transport has this name; {known}")
        own, scratch = with_scratch_store(settings, name)
        config = replace(
            settings.relay.config,
            enabled=True,
            initial_delay="0s",
            batch_size=BATCH_SIZE,
            max_in_flight_batches=BATCHES_IN_FLIGHT,
            poll_interval="200ms",
            lease=f"{LEASE:g}s",  # short: the lanes of a frozen relay are idle until its lease expires
            heartbeat_interval="500ms",
            send_timeout="2s",
            drain_timeout="20s",
        )
        own = replace(own, relay=replace(settings.relay, config=config))
        return cls(settings=own, store=scratch, name=name, transport=transport or next(iter(brokers), ""))

    @property
    def max_in_flight(self) -> int:
        """Messages that one crash may send again, at most."""
        return self.settings.relay.config.max_in_flight

    @property
    def engine(self) -> str:
        """The scheme of the store's URL."""
        return self.settings.store.url.partition(":")[0]

    @property
    def broker(self) -> str:
        """The kind of the transport."""
        return self.settings.transports[self.transport].kind if self.transport else "handlers"

    def open_queue(self) -> DrillQueue | None:
        """Open the queue of the drill; None: events go to a handler. Raises ConfigurationError."""
        return open_drill_queue(self.settings, self.transport, self.name) if self.transport else None


@dataclass(frozen=True, slots=True, kw_only=True)
class DrillJob:
    """What a process of a drill is started with."""

    source: SettingsSource
    transport: str
    name: str
    folder: Path
    role: str
    """Its name: relay-3, writer-1, audit-1, work-2."""
    rate: float = 0.0
    """Of a writer: events per second."""
    keys: int = 0
    """Of a writer: the number of its ordering keys."""
    seed: int = 0

    def target(self) -> DrillTarget:
        """The target of the drill. Raises ConfigurationError."""
        return DrillTarget.of(self.source.load(), name=self.name, transport=self.transport)

    def dump(self) -> str:
        """Return one line that `load` reads."""
        return json.dumps(asdict(self) | {"folder": str(self.folder)})

    @classmethod
    def load(cls, line: str) -> Self:
        fields: dict[str, Any] = json.loads(line)
        fields["source"] = SettingsSource(**fields["source"])
        fields["folder"] = Path(fields["folder"])
        return cls(**fields)
