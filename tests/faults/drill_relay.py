"""`python -m tests.faults.drill_relay`: a relay of a drill without the guard that DRILL_WITHOUT names."""

from __future__ import annotations

import os

from pillarbox.ops.drill.relay_process import main
from tests.faults import mutants

if __name__ == "__main__":
    mutants.mutate(os.environ["DRILL_WITHOUT"])
    raise SystemExit(main())
