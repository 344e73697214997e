"""Relays of BASELINE and of this release replace each other one at a time, under load, in both directions."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Event as Signal
from typing import Any

import psycopg
import pymysql
import pytest

from pillarbox import Event, Outbox
from pillarbox.ops.drill.checker import SOUND, WriterLedger, check
from tests.integration.record.mariadb_ways import connect_arguments
from tests.servers.waiting import wait_until
from tests.upgrades.release import BaselineRelease

BOUND = 120.0
KEYS = 20
PER_TRANSACTION = 10
PLENTY = 300
"""The load pauses while that many events are pending."""

HANDLERS = """
import os
from pillarbox import Handlers

handlers = Handlers()
arrived = os.open("arrived.txt", os.O_WRONLY | os.O_APPEND | os.O_CREAT)

@handlers.on("order.placed")
async def placed(event, context):
    os.write(arrived, f"{os.environ['NAME']} {event.event_id}\\n".encode())
"""


class Fleet:
    """Relays of two releases on one database, and what their handlers received, in order."""

    def __init__(self, url: str, folder: Path, baseline: BaselineRelease) -> None:
        self.url = url
        self.ledger = WriterLedger()
        self._folder = folder
        self._commands = {"old": baseline.command(), "new": [sys.executable, "-m", "pillarbox"]}
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        (folder / "shop_handlers.py").write_text(HANDLERS, encoding="utf-8")

    def run(self, release: str, *arguments: str) -> None:
        ran = subprocess.run(
            [*self._commands[release], *arguments],
            cwd=self._folder,
            env=self._variables(release),
            capture_output=True,
            text=True,
            timeout=BOUND,
            check=False,
        )
        assert ran.returncode == 0, f"{release} {arguments}\n{ran.stdout}\n{ran.stderr}"

    def start(self, release: str, name: str) -> None:
        """Start a relay, and wait until it has delivered an event."""
        with (self._folder / f"{name}.log").open("wb") as output:
            self._running[name] = subprocess.Popen(
                [*self._commands[release], "relay", "--name", name],
                cwd=self._folder,
                env=self._variables(name),
                stdout=output,
                stderr=subprocess.STDOUT,
            )

        def has_delivered() -> bool:
            assert self._running[name].poll() is None, self._log(name)
            return any(worker == name for worker, _ in self.arrived())

        wait_until(has_delivered, bound=BOUND, what=f"{name} delivers", pause=0.05)

    def stop(self, name: str) -> None:
        """Let a relay drain; it must end well."""
        process = self._running.pop(name)
        process.send_signal(signal.SIGTERM)
        assert process.wait(BOUND) == 0, self._log(name)

    def kill_all(self) -> None:
        for process in self._running.values():
            process.kill()
            process.wait()

    def arrived(self) -> list[tuple[str, str]]:
        """The relay and the event id of each call of a handler."""
        file = self._folder / "arrived.txt"
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        return [(name, event_id) for name, _, event_id in (line.partition(" ") for line in lines)]

    @contextmanager
    def under_load(self) -> Iterator[None]:
        """Commit transactions of one writer while the block is open, and roll back every fifth."""
        over = Signal()

        def write() -> None:
            outbox, number = Outbox(), 0
            with closing(self._connect()) as connection:
                while not over.is_set():
                    number += 1
                    if self.ledger.count - len(self.arrived()) < PLENTY:
                        keys = [f"key-{(number + n) % KEYS}" for n in range(PER_TRANSACTION)]
                        ids = outbox.record(connection, *(Event("order.placed", {}, key=key) for key in keys))
                        if number % 5:
                            connection.commit()
                            self.ledger.commit(zip(keys, ids, strict=True))
                        else:
                            connection.rollback()
                    over.wait(0.02)

        with ThreadPoolExecutor(1) as pool:
            writing = pool.submit(write)
            try:
                yield
            finally:
                over.set()
            writing.result()

    def _connect(self) -> Any:
        if self.url.startswith("mariadb:"):
            return pymysql.connect(**connect_arguments(self.url))
        return psycopg.connect(self.url)

    def _variables(self, name: str) -> dict[str, str]:
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "PILLARBOX"))}
        return {
            **kept,
            "NAME": name,
            "PILLARBOX_STORE": self.url,
            "PILLARBOX_TRANSPORT": "handlers:shop_handlers:handlers",
            "PYTHONPATH": str(self._folder),
        }

    def _log(self, name: str) -> str:
        return (self._folder / f"{name}.log").read_text(encoding="utf-8")


@pytest.fixture(params=["postgres", "mariadb"])
def fleet(request: pytest.FixtureRequest, folder: Path, baseline: BaselineRelease) -> Iterator[Fleet]:
    made = Fleet(request.getfixturevalue(f"empty_{request.param}_url"), folder, baseline)
    yield made
    made.kill_all()


def test_a_rollout_and_its_rollback_lose_nothing_and_repeat_nothing(fleet: Fleet) -> None:
    fleet.run("old", "schema", "apply")
    with fleet.under_load():
        fleet.start("old", "old-1")
        fleet.start("old", "old-2")
        fleet.run("new", "schema", "apply")
        for number in (1, 2):
            fleet.start("new", f"new-{number}")
            fleet.stop(f"old-{number}")
        for number in (1, 2):
            fleet.start("old", f"again-{number}")
            fleet.stop(f"new-{number}")
    wait_until(
        lambda: len({event_id for _, event_id in fleet.arrived()}) >= fleet.ledger.count,
        bound=BOUND,
        what="every committed event has arrived",
        pause=0.2,
    )
    for number in (1, 2):
        fleet.stop(f"again-{number}")
    assert check(fleet.ledger, [event_id for _, event_id in fleet.arrived()]) == SOUND
