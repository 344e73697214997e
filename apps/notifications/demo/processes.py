"""The relay of the first layer as a process of its own, as it is shipped, for the demo on a broker."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from apps.notifications.demo.stage import Stage
from apps.notifications.settings import BROKER, DATABASE
from pillarbox import ConfigurationError

SETTINGS = Path(__file__).parent.parent / "pillarbox.toml"
PATIENCE = 30.0


@asynccontextmanager
async def shipped_relay(stage: Stage) -> AsyncIterator[asyncio.subprocess.Process]:
    """`pillarbox relay` with the application's settings file; it drains when the block ends.

    Raises ConfigurationError with the end of its log if it ended by itself.
    """
    log = stage.folder / "relay.log"
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "pillarbox", "--config", str(SETTINGS), "relay"),
            env=os.environ | {DATABASE: stage.database, BROKER: stage.broker},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,  # Ctrl-C is for the demo, which then ends it in order
        )
    try:
        yield process
        if process.returncode is not None:
            said = log.read_text(errors="replace").strip().splitlines()
            raise ConfigurationError(f"the relay ended by itself: {said[-1] if said else 'without a word'}")
    finally:
        if process.returncode is None:
            process.terminate()
            try:
                async with asyncio.timeout(PATIENCE):
                    await process.wait()
            except TimeoutError:
                process.kill()
                await process.wait()
