"""Runs the relay of layer 1 as a separate process, for the demo on a broker."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from apps.notifications.demo.environment import Environment
from apps.notifications.settings import BROKER, DATABASE
from pillarbox import ConfigurationError

SETTINGS = Path(__file__).parent.parent / "pillarbox.toml"
DRAIN_TIMEOUT = 30.0


@asynccontextmanager
async def relay_process(environment: Environment) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run `pillarbox relay` with the application's settings file; drain it when the block ends.

    Raises ConfigurationError with the last line of its log if it exits early.
    """
    log = environment.folder / "relay.log"
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "pillarbox", "--config", str(SETTINGS), "relay"),
            env=os.environ | {DATABASE: environment.database, BROKER: environment.broker},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,  # the demo handles Ctrl-C and stops it in order
        )
    try:
        yield process
        if process.returncode is not None:
            lines = log.read_text(errors="replace").strip().splitlines()
            raise ConfigurationError(f"the relay exited early: {lines[-1] if lines else 'no output'}")
    finally:
        if process.returncode is None:
            process.terminate()
            try:
                async with asyncio.timeout(DRAIN_TIMEOUT):
                    await process.wait()
            except TimeoutError:
                process.kill()
                await process.wait()
