"""`python -m tests.fault_matrix [rows…]`: run the tests of the fault matrix, and print row × engine.

A cell is shown only if all of its tests ran and passed: a skipped test shows nothing. The exit code is 1 if a test
failed. A fault that is partly shown or missing is not a failure: docs/explanation/faults.md says what is lacking.
"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.fault_matrix.results import Results, table, totals
from tests.fault_matrix.rows import ROWS, nodes_of
from tests.tiers import ROOT, Case, cases_of


def main(names: Sequence[str]) -> int:
    if unknown := [name for name in names if name not in {row.name for row in ROWS}]:
        print(
            f"no such row: {', '.join(unknown)}; there are {', '.join(row.name for row in ROWS)}",
            file=sys.stderr,
        )
        return 2
    rows = tuple(row for row in ROWS if not names or row.name in names)
    status, cases = run(nodes_of(rows))
    results = Results(cases)
    print()
    for line in table(rows, results):
        print(line)
    print(f"\n{totals(rows, results)}")
    for reason, number in Counter(reason for case in cases for reason in case.skips).most_common():
        print(f"{number:>5} skipped: {reason}")
    return 1 if status else 0


def run(nodes: Sequence[str]) -> tuple[int, list[Case]]:
    """Run pytest over the nodes. Returns its exit code, and the tests that it ran."""
    if not nodes:
        return 0, []
    with TemporaryDirectory(prefix="pillarbox-", ignore_cleanup_errors=True) as temporary:
        results = Path(temporary, "results.xml")
        options = [f"--basetemp={temporary}/t", f"--junitxml={results}"]
        status = subprocess.run([sys.executable, "-m", "pytest", *options, *nodes], cwd=ROOT, check=False).returncode
        return status, list(cases_of(results)) if results.exists() else []


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
