"""Processes of the demo, on a leash: each is told its scene on standard input and ends when that is closed.

So a child outlives nobody: a parent that was killed lets go of every leash, too. A child does not hear the Ctrl-C meant
for its parent.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from pillarbox.core.errors import PillarboxError
from pillarbox.ops.demo.scene import Scene

LAST_LINES = 5


class ChildFailed(PillarboxError):
    """A process of the demo ended that should not have."""


class Child:
    """The parent's end: one module of the demo as a process. `log` takes everything it says."""

    def __init__(self, module: str, scene: Scene, *, log: Path) -> None:
        self._log = log
        self._module = module
        listening, speaking = os.pipe()
        self._leash = open(speaking, "wb", buffering=0)  # noqa: SIM115 - held until it is let go
        # Written before the child starts: a child that has ended already would break the pipe, and its error be lost.
        self._leash.write(scene.dump().encode() + b"\n")
        with log.open("ab") as output, open(listening, "rb") as end:
            self._process = subprocess.Popen(
                [sys.executable, "-m", module],
                stdin=end,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def check(self) -> None:
        """Raises ChildFailed, with what it said last, if it ended."""
        if (code := self._process.poll()) is not None:
            raise ChildFailed(f"{self._module} ended with {code}: {self._last_words()}")

    def kill(self) -> None:
        """kill -9. Raises ChildFailed if it was something else that ended it."""
        self._process.kill()
        if (code := self._process.wait()) != -signal.SIGKILL:
            raise ChildFailed(f"{self._module} had ended with {code} before it was killed: {self._last_words()}")
        self._leash.close()

    async def release(self, *, within: float) -> None:
        """Let go, and wait for its end in order. Raises ChildFailed for any other end, or none."""
        self._leash.close()
        try:
            code = await asyncio.to_thread(self._process.wait, within)
        except subprocess.TimeoutExpired:
            raise ChildFailed(f"{self._module} did not end within {within:g} s: {self._last_words()}") from None
        if code != 0:
            raise ChildFailed(f"{self._module} ended with {code}: {self._last_words()}")

    def end(self) -> None:
        """Whatever became of it, it is gone afterwards."""
        self._leash.close()
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()

    def _last_words(self) -> str:
        lines = self._log.read_text(errors="replace").splitlines()[-LAST_LINES:]
        return " / ".join(line for line in lines if line.strip()) or "it said nothing"


def told_scene() -> Scene:
    """The child's end: the scene this process was started for."""
    return Scene.load(sys.stdin.readline())


def when_let_go(act: Callable[[], object]) -> None:
    """Call `act`, on a thread of its own, when the parent lets go or dies."""

    def wait() -> None:
        sys.stdin.read()
        act()

    threading.Thread(target=wait, name="leash", daemon=True).start()
