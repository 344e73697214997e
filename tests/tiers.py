"""`python -m tests.tiers [names…]`: the tiers of the test suite, one after another, with the time each took.

Three lines of tiers run beside each other, because much of a test with real servers is waiting for them. The first line
is shown as it runs, the others when they have ended; within a line the order is that of the fastest answer.
"""

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

ROOT = Path(__file__).resolve().parent.parent
BUDGET_SECONDS = 15 * 60
_NO_TESTS_COLLECTED = 5
_CODE = [name for name in ("src", "tests", "benchmarks", "examples", "apps") if (ROOT / name).is_dir()]
_SQLALCHEMY_20 = Path(sys.prefix) / "sqlalchemy20"
_ASSERT_SQLALCHEMY_20 = "import sqlalchemy; v = sqlalchemy.__version__; assert v.startswith('2.0.'), v"


class Result(Enum):
    PASSED = "passed"
    FAILED = "FAILED"
    SKIPPED = "no tests yet"


Row = tuple[str, Result, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """Commands that must all succeed. With a folder, pytest over that folder is the last of them."""

    name: str
    commands: tuple[Sequence[str], ...] = ()
    folder: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    line: int = 0
    """Tiers of one line run one after another."""

    def run(self, output: IO[str]) -> Row:
        print(f"\n=== {self.name} ===", file=output, flush=True)
        began = time.monotonic()
        return self.name, self._result(output), time.monotonic() - began

    def _result(self, output: IO[str]) -> Result:
        if self.folder is not None and not any((ROOT / self.folder).rglob("test_*.py")):
            print(f"{self.folder} has no tests yet", file=output, flush=True)
            return Result.SKIPPED
        # All commands run even after a failure: one run shows everything there is to mend.
        statuses = [self._call(command, output) for command in self.commands]
        if self.folder is not None:
            status = self._call(_python("-m", "pytest", self.folder), output)
            if status == _NO_TESTS_COLLECTED and not any(statuses):
                return Result.SKIPPED
            statuses.append(status)
        return Result.FAILED if any(statuses) else Result.PASSED

    def _call(self, command: Sequence[str], output: IO[str]) -> int:
        print("$", *(Path(command[0]).name, *command[1:]), file=output, flush=True)
        environment = os.environ | dict(self.environment)
        return subprocess.run(
            command, cwd=ROOT, env=environment, stdout=output, stderr=subprocess.STDOUT, check=False
        ).returncode


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
            # Its cache misses an import of a module that came into being after the importing one.
            _tool("lint-imports", "--no-cache"),
        ),
    ),
    Tier(name="unit", folder="tests/unit"),
    Tier(name="conformance", folder="tests/conformance", line=1),
    Tier(name="simulation", folder="tests/simulation", line=1),
    Tier(name="integration", folder="tests/integration"),
    Tier(
        name="sqlalchemy20",
        commands=(_python("-c", _ASSERT_SQLALCHEMY_20),),
        folder="tests/integration/record",
        environment={"PYTHONPATH": str(_SQLALCHEMY_20)},
    ),
    Tier(name="faults", folder="tests/faults", line=2),
    Tier(name="plans", folder="tests/plans", line=2),
    Tier(name="examples", folder="tests/examples"),
    Tier(name="apps", folder="tests/apps", line=2),
    Tier(name="console", folder="tests/console", line=2),
    Tier(name="docs", folder="tests/docs"),
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
    first, *others = _lines(chosen)
    with ThreadPoolExecutor() as pool, ExitStack() as files:
        beside = []
        for line in others:
            output = files.enter_context(TemporaryFile("w+"))
            beside.append((pool.submit(_run, line, output), output))
        rows = _run(first, sys.stdout)
        for ended, output in beside:
            rows += ended.result()
            output.seek(0)
            print(output.read(), flush=True)
    _print_table(rows, total=time.monotonic() - began)
    return 1 if any(result is Result.FAILED for _, result, _ in rows) else 0


def _lines(chosen: Sequence[Tier]) -> list[list[Tier]]:
    numbers = sorted({tier.line for tier in chosen})
    return [[tier for tier in chosen if tier.line == number] for number in numbers]


def _run(line: Sequence[Tier], output: IO[str]) -> list[Row]:
    return [tier.run(output) for tier in line]


def _print_table(rows: Sequence[Row], *, total: float) -> None:
    print(f"\n{'tier':<14}{'seconds':>9}  result")
    for name, result, seconds in rows:
        print(f"{name:<14}{seconds:>9.1f}  {result.value}")
    print(f"{'total':<14}{total:>9.1f}  of {BUDGET_SECONDS} allowed on 2 cores", flush=True)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
