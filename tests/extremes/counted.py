"""`python -m tests.extremes.counted FILE relay …`: the command line, which writes what it has to FILE at SIGUSR1."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import sys
from pathlib import Path
from types import FrameType

from pillarbox.ops.cli import main


def write_counts(file: Path) -> None:
    """Write the number of tasks of the relay's event loop, and of objects."""
    tasks = len(asyncio.all_tasks())
    gc.collect()
    counts = {"tasks": tasks, "objects": len(gc.get_objects())}
    written = file.with_suffix(".new")
    written.write_text(json.dumps(counts))
    os.replace(written, file)


if __name__ == "__main__":
    file = Path(sys.argv.pop(1))

    def on_signal(_: int, __: FrameType | None) -> None:
        write_counts(file)

    signal.signal(signal.SIGUSR1, on_signal)
    main()
