"""The user's commands that cut off the database or the broker, and restore it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from pillarbox.core.errors import CommandError, ConfigurationError

TIMEOUT = 120.0
"""Seconds that a command may take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutageHooks:
    """Two shell commands; both are empty if there are none."""

    what: str
    """database or broker."""
    cut: str
    restore: str

    def check(self) -> None:
        """Raise ConfigurationError if only one is given."""
        if bool(self.cut) != bool(self.restore):
            raise ConfigurationError(f"--cut-{self.what} and --restore-{self.what} are used together; give both")

    @property
    def given(self) -> bool:
        return bool(self.cut)

    async def run_cut(self) -> None:
        """Cut it off. Raises CommandError if the command fails."""
        await self._run(f"--cut-{self.what}", self.cut)

    async def run_restore(self) -> None:
        """Restore it. Raises CommandError if the command fails."""
        await self._run(f"--restore-{self.what}", self.restore)

    async def _run(self, option: str, command: str) -> None:
        process = await asyncio.create_subprocess_shell(
            command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        try:
            _, errors = await asyncio.wait_for(process.communicate(), TIMEOUT)
        except TimeoutError:
            process.kill()
            raise CommandError(f"{option} did not end within {TIMEOUT:g} s; let it return at once") from None
        if process.returncode != 0:
            text = errors.decode(errors="replace").strip()[-200:]
            raise CommandError(f"{option} ended with {process.returncode}: {text or 'it printed nothing'}")
