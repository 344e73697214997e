"""`pillarbox relay` as a process that can be frozen, killed and drained."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path

from tests.faults.mutants import Guard
from tests.servers import forkserver, processes
from tests.servers.processes import Started

LEASE = 4.0
BATCH_SIZE = 100
IN_FLIGHT = 2
MAX_IN_FLIGHT = BATCH_SIZE * IN_FLIGHT
"""Messages that one crash may send again, at most."""

_SETTINGS = {
    "LOGGING__EVENTS": "true",
    "RELAY__BATCH_SIZE": str(BATCH_SIZE),
    "RELAY__MAX_IN_FLIGHT_BATCHES": str(IN_FLIGHT),
    "RELAY__LEASE": f"{LEASE:g}s",
    "RELAY__HEARTBEAT_INTERVAL": "500ms",
    "RELAY__SEND_TIMEOUT": "2s",
    "RELAY__POLL_INTERVAL": "200ms",
    "RELAY__DRAIN_TIMEOUT": "20s",
    "RELAY__RETRY__BASE": "100ms",
    "RELAY__RETRY__MAX_DELAY": "1s",
    "RELAY__RETRY__MAX_ATTEMPTS": "unlimited",
}
SHORT_LEASE = {
    "RELAY__LEASE": "2s",
    "RELAY__HEARTBEAT_INTERVAL": "200ms",
    "RELAY__SEND_TIMEOUT": "500ms",
}
_numbers = count(1)
_CONFIRMED = re.compile("delivered event: event_id=([^ ]+) ")
_TAIL = 2 * MAX_IN_FLIGHT * 300
"""Bytes of log: lines about twice as many events."""


class RelayProcess:
    """One process; its name is its label in `outbox_relay` and its name for the witness.

    As a mutant it lacks one of its guards. `name_session` adds its name to the URL of the store.
    """

    def __init__(
        self,
        folder: Path,
        settings: Mapping[str, str],
        *,
        without: Guard | None = None,
        name_session: Callable[[str, str], str] = lambda url, _: url,
    ) -> None:
        self.name = f"relay-{next(_numbers)}"
        self.log = folder / f"{self.name}.log"
        named = {"STORE": name_session(settings["STORE"], self.name)}
        environment = {f"PILLARBOX_{name}": value for name, value in (_SETTINGS | dict(settings) | named).items()}
        environment |= {"PATH": os.defpath}
        self._flag = folder / f"{self.name}.freeze"
        program = ["tests.faults.program", str(self._flag), without or "", "relay", "--name", self.name]
        with self.log.open("wb") as output:
            process = forkserver.start(*program, folder=folder, environment=environment, log=output)
        self._started = Started(name=self.name, process=process, log=self.log, ports=())
        processes.registry.processes.append(self._started)

    @property
    def running(self) -> bool:
        return self._started.running

    def freeze(self) -> None:
        self._started.process.send_signal(signal.SIGSTOP)

    def freeze_before_settlement(self) -> None:
        """Ask it to freeze between a confirm and its settlement."""
        self._flag.touch()

    @property
    def frozen(self) -> bool:
        return processes.state(self._started.pid) == "T"

    def thaw(self) -> None:
        self._started.process.send_signal(signal.SIGCONT)

    def terminate(self) -> None:
        self._started.terminate()

    def kill(self) -> None:
        self._started.process.kill()

    def wait(self, *, bound: float = 40) -> int:
        """Return the exit code, once it has ended."""
        code = self._started.process.wait(bound)
        if self._started in processes.registry.processes:
            processes.forget(self._started)
        return code

    def confirmed_last(self) -> set[str]:
        """Return the ids of the events that it confirmed last; at least as many as it may have in flight."""
        with self.log.open("rb") as log:
            log.seek(max(0, self.log.stat().st_size - _TAIL))
            return set(_CONFIRMED.findall(log.read().decode(errors="replace")))

    def said(self, words: str) -> bool:
        """Return whether these words are in its log."""
        return words in self.story()

    def story(self) -> str:
        """Return its log."""
        return self.log.read_text(errors="replace")

    def end(self) -> None:
        """End the process if it still runs."""
        if self.running:
            self.kill()
        self.wait()
