"""`python -m tests.faults.program FLAG GUARD relay …`: the command line, which can stop itself.

The moment between a confirm and its settlement is too short for a signal from outside. If the file FLAG exists, the
process deletes it and stops at that moment, as with SIGSTOP, and reports when that settlement has returned. GUARD names
the guard to remove, or is empty.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
from pathlib import Path
from typing import Any

from pillarbox import failpoints
from pillarbox.ops.cli import main
from tests.faults import mutants

LATE_SETTLEMENT = "the settlement after the freeze has returned"


def freeze_before_settlement(flag: Path) -> None:
    was_frozen = False

    def freeze(point: str) -> None:
        nonlocal was_frozen
        if point == "before-settle" and flag.exists():
            flag.unlink()
            os.kill(os.getpid(), signal.SIGSTOP)
            was_frozen = True
        elif point == "after-settle" and was_frozen:
            was_frozen = False
            print(LATE_SETTLEMENT, flush=True)

    failpoints.watch(freeze)


def name_sqlite_sessions(name: str) -> None:
    """Tell the witness in a SQLite file who writes."""
    connect = sqlite3.connect

    def connect_named(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*arguments, **options)
        connection.create_function("fault_name", 0, lambda: name)
        return connection

    sqlite3.connect = connect_named  # type: ignore[assignment]


if __name__ == "__main__":
    flag, guard = Path(sys.argv.pop(1)), sys.argv.pop(1)
    freeze_before_settlement(flag)
    name_sqlite_sessions(sys.argv[-1])
    if guard:
        mutants.mutate(guard)
    main()
