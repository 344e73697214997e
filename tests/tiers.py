"""`python -m tests.tiers [names…]`: the tiers of the test suite, three beside each other, with the time each took.

CPU time is that of a tier's processes and of the servers that they started and waited for.

Three on two cores, because much of a test with real servers is waiting for them. When one has ended it is shown and the
next begins: first what answers fast, then the longest, so that all end at about the same time.
"""

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import IO

ROOT = Path(__file__).resolve().parent.parent
BUDGET_SECONDS = 15 * 60
ABREAST = 3
_NO_TESTS_COLLECTED = 5
_CODE = [name for name in ("src", "tests", "benchmarks", "examples", "apps") if (ROOT / name).is_dir()]
_SQLALCHEMY_20 = Path(sys.prefix) / "sqlalchemy20"
_ASSERT_SQLALCHEMY_20 = "import sqlalchemy; v = sqlalchemy.__version__; assert v.startswith('2.0.'), v"


class Result(Enum):
    PASSED = "passed"
    FAILED = "FAILED"
    SKIPPED = "no tests yet"


@dataclass(frozen=True, slots=True)
class Row:
    """What became of a tier."""

    name: str
    result: Result
    seconds: float
    cpu: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """Commands that must all succeed. With a folder, pytest over that folder is the last of them."""

    name: str
    commands: tuple[Sequence[str], ...] = ()
    folder: str | None = None
    without: str | None = None
    """A folder in that folder that is a tier of its own."""
    marked: str | None = None
    """Run only the tests that carry this mark."""
    environment: Mapping[str, str] = field(default_factory=dict)

    def run(self, output: IO[str]) -> Row:
        print(f"\n=== {self.name} ===", file=output, flush=True)
        began = time.monotonic()
        cpu: list[float] = []
        result = self._result(output, cpu)
        return Row(self.name, result, time.monotonic() - began, sum(cpu))

    def run_aside(self) -> tuple[Row, str]:
        """Run it and return what it showed."""
        print(f"{self.name} …", flush=True)
        with TemporaryFile("w+") as output:
            row = self.run(output)
            output.seek(0)
            return row, output.read()

    def _result(self, output: IO[str], cpu: list[float]) -> Result:
        if self.folder is not None and not any((ROOT / self.folder).rglob("test_*.py")):
            print(f"{self.folder} has no tests yet", file=output, flush=True)
            return Result.SKIPPED
        # All commands run even after a failure: one run shows everything there is to mend.
        statuses = [self._call(command, output, cpu) for command in self.commands]
        if self.folder is not None:
            left_out = [f"--ignore={self.without}"] if self.without else []
            chosen = ["-m", self.marked] if self.marked else []
            status = self._pytest([self.folder, *left_out, *chosen], output, cpu)
            if status == _NO_TESTS_COLLECTED and not any(statuses):
                return Result.SKIPPED
            statuses.append(status)
        return Result.FAILED if any(statuses) else Result.PASSED

    def _pytest(self, arguments: Sequence[str], output: IO[str], cpu: list[float]) -> int:
        """Run pytest with a temporary folder of its own: where several use one, they delete each other's."""
        with TemporaryDirectory(prefix="pillarbox-", ignore_cleanup_errors=True) as folder:
            command = _python("-m", "pytest", f"--basetemp={folder}/t", *arguments)
            return self._call(command, output, cpu, PYTEST_DEBUG_TEMPROOT=folder)

    def _call(self, command: Sequence[str], output: IO[str], cpu: list[float], **variables: str) -> int:
        print("$", *(Path(command[0]).name, *command[1:]), file=output, flush=True)
        environment = os.environ | dict(self.environment) | variables
        # Without bytecode, every process of a tier would compile the package again.
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=output, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        cpu.append(usage.ru_utime + usage.ru_stime)
        return process.returncode


def _python(*arguments: str) -> Sequence[str]:
    return (sys.executable, *arguments)


def _tool(name: str, *arguments: str) -> Sequence[str]:
    return (str(Path(sys.executable).parent / name), *arguments)


TIERS = (
    Tier(
        name="check",
        commands=(
            _tool("ruff", "format", "--check", "."),
            _tool("ruff", "check", "."),
            _tool("mypy", *_CODE),
            _python("-m", "tests.pyright"),
            # Its cache misses an import of a module that came into being after the importing one.
            _tool("lint-imports", "--no-cache"),
        ),
    ),
    Tier(name="unit", folder="tests/unit"),
    Tier(name="upgrades", folder="tests/upgrades"),
    Tier(name="apps", folder="tests/apps"),
    Tier(name="integration", folder="tests/integration", without="tests/integration/cli"),
    Tier(name="console", folder="tests/console"),
    Tier(name="simulation", folder="tests/simulation"),
    Tier(name="faults", folder="tests/faults"),
    Tier(name="cli", folder="tests/integration/cli"),
    Tier(name="conformance", folder="tests/conformance"),
    Tier(name="docs", folder="tests/docs"),
    Tier(
        name="sqlalchemy20",
        commands=(_python("-c", _ASSERT_SQLALCHEMY_20),),
        folder="tests/integration/record",
        marked="sqlalchemy",
        environment={"PYTHONPATH": str(_SQLALCHEMY_20)},
    ),
    Tier(name="plans", folder="tests/plans"),
    Tier(name="examples", folder="tests/examples"),
    Tier(name="wheel", folder="tests/e2e"),
)


def main(names: Sequence[str]) -> int:
    known = {tier.name: tier for tier in TIERS}
    unknown = [name for name in names if name not in known]
    if unknown:
        print(f"no such tier: {', '.join(unknown)}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    chosen = [known[name] for name in names] or TIERS
    began = time.monotonic()
    rows = [chosen[0].run(sys.stdout)] if len(chosen) == 1 else _run_abreast(chosen)
    _print_table(rows, total=time.monotonic() - began)
    return 1 if any(row.result is Result.FAILED for row in rows) else 0


def _run_abreast(chosen: Sequence[Tier]) -> list[Row]:
    rows = []
    with ThreadPoolExecutor(ABREAST) as pool:
        try:
            for ended in as_completed([pool.submit(tier.run_aside) for tier in chosen]):
                row, output = ended.result()
                print(output, flush=True)
                rows.append(row)
        except KeyboardInterrupt:
            pool.shutdown(cancel_futures=True)
            raise
    return rows


def _print_table(rows: Sequence[Row], *, total: float) -> None:
    print(f"\n{'tier':<14}{'seconds':>9}{'CPU':>9}  result")
    for row in rows:
        print(f"{row.name:<14}{row.seconds:>9.1f}{row.cpu:>9.1f}  {row.result.value}")
    cpu = sum(row.cpu for row in rows)
    print(f"{'total':<14}{total:>9.1f}{cpu:>9.1f}  of {BUDGET_SECONDS} s allowed on 2 cores", flush=True)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
