"""`python -m tests.faults.program FLAG GUARD relay …`: the command line, which can stop itself.

The moment between a confirm and its settlement is too short for a signal from outside. If the file FLAG exists, the
process deletes it and stops at that moment, as with SIGSTOP. GUARD names the guard to remove, or is empty.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from pillarbox import failpoints
from pillarbox.ops.cli import main
from tests.faults import mutants


def freeze_before_settlement(flag: Path) -> None:
    def freeze(point: str) -> None:
        if point == "before-settle" and flag.exists():
            flag.unlink()
            os.kill(os.getpid(), signal.SIGSTOP)

    failpoints.watch(freeze)


if __name__ == "__main__":
    flag, guard = Path(sys.argv.pop(1)), sys.argv.pop(1)
    freeze_before_settlement(flag)
    if guard:
        mutants.mutate(guard)
    main()
