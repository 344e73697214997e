"""The processes of a drill: relays, writers and readers, each with its log and its control file."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path

from pillarbox.ops.child_process import ChildProcess
from pillarbox.ops.drill.control import Control
from pillarbox.ops.drill.ledger import HOLDS
from pillarbox.ops.drill.target import DrillJob

RELAY = "pillarbox.ops.drill.relay_process"
WRITER = "pillarbox.ops.drill.writer_process"
READER = "pillarbox.ops.drill.reader_process"
STOP_TIMEOUT = 60.0
"""Seconds within which a process must end after it is told to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Modules:
    """The modules that the processes run; tests replace them."""

    relay: str = RELAY
    writer: str = WRITER
    reader: str = READER


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A process of the drill."""

    name: str
    process: ChildProcess
    control: Control


@dataclass(slots=True)
class Fleet:
    """Starts and ends the processes of a drill."""

    job: DrillJob
    """For all processes but their role."""
    modules: Modules = Modules()
    relays: list[Member] = field(default_factory=list[Member])
    writers: list[Member] = field(default_factory=list[Member])
    readers: list[Member] = field(default_factory=list[Member])
    _numbers: count[int] = field(default_factory=lambda: count(1))

    @property
    def folder(self) -> Path:
        return self.job.folder

    def start_relay(self) -> Member:
        """Start a relay and return at once."""
        member = self._start(self.modules.relay, f"relay-{next(self._numbers)}")
        self.relays.append(member)
        return member

    def start_writer(self, number: int, *, rate: float, keys: int) -> None:
        """Start a writer of so many events per second over so many keys of its own."""
        self.writers.append(self._start(self.modules.writer, f"writer-{number}", rate=rate, keys=keys))

    def start_reader(self, kind: str) -> Member:
        """Start a reader: audit or work."""
        member = self._start(self.modules.reader, f"{kind}-{next(self._numbers)}")
        self.readers.append(member)
        return member

    @property
    def workers(self) -> list[Member]:
        """The readers that handle messages."""
        return [member for member in self.readers if member.name.startswith("work")]

    def hold_writers(self) -> None:
        """Let no writer begin a transaction until `resume_writers`."""
        (self.folder / HOLDS[0]).touch()

    def resume_writers(self) -> None:
        (self.folder / HOLDS[0]).unlink(missing_ok=True)

    def throttle_writers(self, throttled: bool) -> None:
        """Let the writers pause while the relays do not keep up."""
        if throttled:
            (self.folder / HOLDS[1]).touch()
        else:
            (self.folder / HOLDS[1]).unlink(missing_ok=True)

    @property
    def members(self) -> list[Member]:
        """All processes."""
        return [*self.writers, *self.relays, *self.readers]

    def check(self) -> None:
        """Raise CommandError if a process has ended by itself."""
        for member in self.members:
            member.process.check()

    async def stop(self, members: list[Member]) -> int:
        """Stop these processes in their own time; return how many messages they had in flight when they ended.

        Raises CommandError if one does not end with 0.
        """
        for member in members:
            member.process.thaw()
        await asyncio.gather(*(member.process.stop(within=STOP_TIMEOUT) for member in members))
        in_flight = sum(member.control.in_flight for member in members)
        for member in list(members):
            self.forget(member)
        return in_flight

    def forget(self, member: Member) -> None:
        """Forget a process that has ended."""
        member.control.close()
        for members in (self.relays, self.writers, self.readers):
            if member in members:
                members.remove(member)

    def close(self) -> None:
        """End every process that still runs."""
        for member in self.members:
            member.process.close()

    def _start(self, module: str, role: str, *, rate: float = 0.0, keys: int = 0) -> Member:
        job = replace(self.job, role=role, rate=rate, keys=keys)
        control = Control(self.folder / f"{role}.control")
        process = ChildProcess(module, job.dump(), log=self.folder / f"{role}.log")
        return Member(name=role, process=process, control=control)
