"""The commands of a release on one database, and BASELINE's tables with data."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.servers.waiting import wait_until
from tests.upgrades.release import BaselineRelease

BOUND = 120.0

HANDLERS = """
from pillarbox import Handlers, PermanentError

handlers = Handlers()

@handlers.on("order.placed", name="placed")
async def placed(event, context):
    pass

@handlers.on("order.failed", name="failed")
async def failed(event, context):
    raise PermanentError("no such order")
"""


class Release:
    """Runs the commands of a release on one store, in a folder with handlers."""

    def __init__(self, url: str, folder: Path, baseline: BaselineRelease | None = None) -> None:
        self.url = url
        self._folder = folder
        self._command = [sys.executable, "-m", "pillarbox"] if baseline is None else baseline.command()
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PILLARBOX"))}
        self._variables = {
            **kept,
            "PILLARBOX_STORE": url,
            "PILLARBOX_TRANSPORT": "handlers:shop_handlers:handlers",
            "PYTHONPATH": str(folder),
        }
        (folder / "shop_handlers.py").write_text(HANDLERS, encoding="utf-8")

    def attempt(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self._command, *arguments],
            cwd=self._folder,
            env=self._variables,
            capture_output=True,
            text=True,
            timeout=BOUND,
            check=False,
        )

    def run(self, *arguments: str) -> str:
        ran = self.attempt(*arguments)
        assert ran.returncode == 0, f"{arguments}\n{ran.stdout}\n{ran.stderr}"
        return ran.stdout

    def events(self, wanted: str) -> set[str]:
        listed = json.loads(self.run("events", "list", "--status", wanted, "--json"))
        return {event["event_id"] for event in listed["events"]}

    def statuses(self) -> dict[str, str]:
        """The status of each event, by its id."""
        listed = json.loads(self.run("events", "list", "--json"))
        return {event["event_id"]: event["status"] for event in listed["events"]}

    def relays(self) -> list[str]:
        """The names of the relays that run."""
        return sorted(relay["name"] for relay in json.loads(self.run("relays", "list", "--json"))["relays"])

    @contextmanager
    def relay(self, name: str) -> Iterator["subprocess.Popen[bytes]"]:
        """A relay process; it must drain and end well."""
        command = [*self._command, "relay", "--name", name, "--fail-fast"]
        log = self._folder / f"{name}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                command, cwd=self._folder, env=self._variables, stdout=output, stderr=subprocess.STDOUT
            )
        try:

            def joined() -> bool:
                assert process.poll() is None, log.read_text(encoding="utf-8")
                return name in self.relays()

            wait_until(joined, bound=BOUND, what=f"relay {name}", pause=0.2)
            yield process
            process.send_signal(signal.SIGTERM)
            assert process.wait(BOUND) == 0, log.read_text(encoding="utf-8")
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()


def fill(old: Release) -> None:
    """BASELINE's tables with an event in the history, a dead letter and a pending event."""
    old.run("schema", "apply")
    old.run("record", "order.placed", '{"id": 1}', "--id", "delivered")
    old.run("record", "order.failed", '{"id": 2}', "--id", "dead")
    old.run("relay", "--until-empty")
    old.run("record", "order.placed", '{"id": 3}', "--id", "pending")
