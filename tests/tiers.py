"""`python -m tests.tiers [names…]`: run the tiers of the test suite and print a table of results.

CPU time is that of a tier's processes and of the servers that they started and waited for.

Three run at a time on two cores, because a test with real servers spends much of its time waiting for them;
CONCURRENT_TIERS=1 runs one at a time. The output of a tier is printed when the tier ends; then the next tier starts.
"""

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import IO
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
BUDGET_SECONDS = 25 * 60
CONCURRENT_TIERS = int(os.environ.get("CONCURRENT_TIERS", "3"))
IN_CI = os.environ.get("CI") == "true"
"""A missing server is a skip on a laptop, and a failure in CI."""
NOT_SUPPORTED = "not supported: "
"""How the reason of a skip begins if the adapter, by its capabilities, or this Python lacks what the test needs."""
_CODE = [name for name in ("src", "tests", "benchmarks", "examples", "apps") if (ROOT / name).is_dir()]
_ENGINES = ("rabbitmq", "kafka", "mariadb", "nats", "redis", "webhook")
_SQLALCHEMY_20 = Path(sys.prefix) / "sqlalchemy20"
_ASSERT_SQLALCHEMY_20 = "import sqlalchemy; v = sqlalchemy.__version__; assert v.startswith('2.0.'), v"


class Result(Enum):
    PASSED = "passed"
    FAILED = "FAILED"


@dataclass(slots=True)
class Counts:
    """The tests of a tier that passed, and the reasons of those that were skipped."""

    passed: int = 0
    skipped: Counter[str] = field(default_factory=Counter)

    @property
    def unexpected(self) -> Counter[str]:
        """The skips that no capability explains, such as those for a missing server."""
        return Counter({reason: n for reason, n in self.skipped.items() if not reason.startswith(NOT_SUPPORTED)})


@dataclass(frozen=True, slots=True, kw_only=True)
class TierReport:
    """The result of a tier."""

    name: str
    result: Result
    seconds: float
    cpu: float
    counts: Counts


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """Commands that must all succeed. With a folder, pytest over that folder is the last of them."""

    name: str
    commands: tuple[Sequence[str], ...] = ()
    folder: str | None = None
    without: tuple[str, ...] = ()
    """Folders in that folder that belong to other tiers."""
    marked: str | None = None
    """Run only the tests that carry this mark."""
    environment: Mapping[str, str] = field(default_factory=dict)

    def run(self, output: IO[str]) -> TierReport:
        print(f"\n=== {self.name} ===", file=output, flush=True)
        start = time.monotonic()
        cpu: list[float] = []
        counts = Counts()
        # All commands run even after a failure: one run shows everything that fails.
        statuses = [self._call(command, output, cpu) for command in self.commands]
        if self.folder is not None:
            # Pytest fails if it collects no test: a lost folder or mark is not a passed tier.
            statuses.append(self._pytest(self.folder, output, cpu, counts))
        result = Result.FAILED if any(statuses) else Result.PASSED
        seconds = time.monotonic() - start
        return TierReport(name=self.name, result=result, seconds=seconds, cpu=sum(cpu), counts=counts)

    def run_captured(self) -> tuple[TierReport, str]:
        """Run it and return its output."""
        print(f"{self.name} …", flush=True)
        with TemporaryFile("w+") as output:
            report = self.run(output)
            output.seek(0)
            return report, output.read()

    def _pytest(self, folder: str, output: IO[str], cpu: list[float], counts: Counts) -> int:
        """Run pytest with its own temporary folder: processes that share one delete each other's files."""
        without = [f"--ignore={ignored}" for ignored in self.without]
        marked = ["-m", self.marked] if self.marked else []
        with TemporaryDirectory(prefix="pillarbox-", ignore_cleanup_errors=True) as temporary:
            results = Path(temporary, "results.xml")
            options = [f"--basetemp={temporary}/t", f"--junitxml={results}"]
            command = _python("-m", "pytest", *options, folder, *without, *marked)
            status = self._call(command, output, cpu, PYTEST_DEBUG_TEMPROOT=temporary)
            if results.exists():
                _count(results, counts)
            return status

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A test in pytest's result file, with its parameters in brackets."""

    module: str
    """Dotted, with the class if there is one."""
    name: str
    failed: bool
    skips: tuple[str, ...]
    """The reason if it was skipped."""

    @property
    def passed(self) -> bool:
        return not self.failed and not self.skips


def cases_of(results: Path) -> Iterator[Case]:
    """Yield the tests of pytest's result file."""
    for case in ElementTree.parse(results).iter("testcase"):  # noqa: S314 - our own pytest wrote it
        yield Case(
            module=case.get("classname", ""),
            name=case.get("name", ""),
            failed=any(child.tag in ("failure", "error") for child in case),
            skips=tuple(skip.get("message", "") for skip in case.iter("skipped"))[:1],
        )


def _count(results: Path, counts: Counts) -> None:
    """Add the tests of pytest's result file."""
    for case in cases_of(results):
        counts.skipped.update(case.skips)
        counts.passed += case.passed


def _python(*arguments: str) -> Sequence[str]:
    return (sys.executable, *arguments)


def _tool(name: str, *arguments: str) -> Sequence[str]:
    return (str(Path(sys.executable).parent / name), *arguments)


# The long ones first, so that none of them runs alone at the end.
TIERS = (
    Tier(
        name="check",
        commands=(
            _tool("ruff", "format", "--check", "."),
            _tool("ruff", "check", "."),
            _tool("mypy", *_CODE),
            _python("-m", "tests.pyright"),
            # Its cache misses an import of a module that is newer than the importing one.
            _tool("lint-imports", "--no-cache"),
        ),
    ),
    Tier(name="unit", folder="tests/unit"),
    Tier(name="upgrades", folder="tests/upgrades"),
    Tier(name="frameworks", folder="tests/frameworks"),
    Tier(name="apps", folder="tests/apps"),
    Tier(
        name="integration",
        folder="tests/integration",
        without=tuple(
            f"tests/integration/{name}"
            for name in ("cli", "consume", "inbox", "migrations", "record", "sqlite", *_ENGINES)
        ),
    ),
    Tier(name="simulation", folder="tests/simulation"),
    Tier(name="conformance", folder="tests/conformance"),
    Tier(name="faults", folder="tests/faults"),
    Tier(name="record", folder="tests/integration/record"),
    Tier(name="inbox", folder="tests/integration/inbox"),
    Tier(name="sqlite", folder="tests/integration/sqlite"),
    Tier(name="migrations", folder="tests/integration/migrations"),
    *(Tier(name=name, folder=f"tests/integration/{name}") for name in _ENGINES),
    Tier(name="console", folder="tests/console"),
    Tier(name="cli", folder="tests/integration/cli"),
    Tier(name="consume", folder="tests/integration/consume"),
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
    tiers = [known[name] for name in names] or TIERS
    start = time.monotonic()
    reports = [tiers[0].run(sys.stdout)] if len(tiers) == 1 else _run_concurrently(tiers)
    for line in summary(reports, seconds=time.monotonic() - start):
        print(line, flush=True)
    return 0 if all(has_passed(report) for report in reports) else 1


def has_passed(report: TierReport) -> bool:
    """Whether nothing failed and, in CI, no test was skipped that the adapters support."""
    return report.result is Result.PASSED and not (IN_CI and report.counts.unexpected)


def _run_concurrently(tiers: Sequence[Tier]) -> list[TierReport]:
    reports = []
    with ThreadPoolExecutor(CONCURRENT_TIERS) as pool:
        try:
            for ended in as_completed([pool.submit(tier.run_captured) for tier in tiers]):
                report, output = ended.result()
                print(output, flush=True)
                reports.append(report)
        except KeyboardInterrupt:
            pool.shutdown(cancel_futures=True)
            raise
    return reports


def summary(reports: Sequence[TierReport], *, seconds: float) -> Iterator[str]:
    """Yield a table with one line per tier, and the tests that were skipped although the adapters support them."""
    yield f"\n{'tier':<14}{'seconds':>9}{'CPU':>9}{'passed':>9}{'skipped':>9}  result"
    for report in reports:
        passed, skipped = report.counts.passed, report.counts.skipped.total()
        numbers = f"{report.seconds:>9.1f}{report.cpu:>9.1f}{passed:>9}{skipped:>9}"
        yield f"{report.name:<14}{numbers}  {report.result.value}"
    passed = sum(report.counts.passed for report in reports)
    skipped = sum(report.counts.skipped.total() for report in reports)
    numbers = f"{seconds:>9.1f}{sum(report.cpu for report in reports):>9.1f}{passed:>9}{skipped:>9}"
    yield f"{'total':<14}{numbers}  of {BUDGET_SECONDS} s allowed on 2 cores"
    if unexpected := sum(report.counts.unexpected.total() for report in reports):
        level = "ERROR" if IN_CI else "WARNING"
        yield f"\n{level}: {unexpected} tests were skipped, and not for a missing capability of an adapter:"
        for report in reports:
            for reason, number in report.counts.unexpected.most_common():
                yield f"{report.name:<14}{number:>5} × {reason}"


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
