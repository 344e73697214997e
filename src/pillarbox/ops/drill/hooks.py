"""The user's commands that cut off the database or the broker, and restore it."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from tempfile import TemporaryFile

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

    @asynccontextmanager
    async def outage(self) -> AsyncIterator[None]:
        """Cut it off while the block is open; it is restored also after an error or when cancelled.

        Raises CommandError if a command fails; if both do, the error names both.
        """
        failed: CommandError | None = None
        try:
            await self._run(f"--cut-{self.what}", self.cut)
            yield
        except CommandError as error:
            failed = error
            raise
        finally:
            try:
                await self._run(f"--restore-{self.what}", self.restore)
            except CommandError as error:
                raise CommandError("; ".join(str(each) for each in (failed, error) if each)) from error

    async def _run(self, option: str, command: str) -> None:
        # Not a pipe: a server that the command starts keeps it open.
        with TemporaryFile() as output:
            process = await asyncio.create_subprocess_shell(
                command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=output,
                start_new_session=True,
            )
            try:
                code = await asyncio.wait_for(process.wait(), TIMEOUT)
            except TimeoutError:
                raise CommandError(f"{option} did not end within {TIMEOUT:g} s; let it return at once") from None
            finally:
                if process.returncode is None:  # also after Ctrl-C
                    with suppress(ProcessLookupError):
                        os.killpg(process.pid, signal.SIGKILL)  # the shell and what it started
                    await process.wait()
            if code != 0:
                output.seek(0)
                text = output.read().decode(errors="replace").strip()[-200:]
                raise CommandError(f"{option} ended with {code}: {text or 'it printed nothing'}")
