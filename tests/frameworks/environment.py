"""An environment per framework: its own lock and the built wheel of this project, nothing of the development tools.

An example is copied into an empty folder and runs there, as for a user. Environments are kept in `.venv/frameworks`
and built anew when their lock changes; the wheel is installed anew for each test run.
"""

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
LOCKS = ROOT / "requirements" / "frameworks"
NEWEST = "_newest"
"""How the names of locks end whose packages need a newer Python than the oldest that Pillarbox supports."""
_FOLDER = Path(sys.prefix) / "frameworks"
_ASSIGNMENT = re.compile(r"[A-Z_]+=")


class Environment:
    """A virtual environment with the packages of one lock, on this Python or another one."""

    def __init__(self, name: str, *, python: str = sys.executable) -> None:
        self._folder = _FOLDER / name
        self._lock = LOCKS / f"{name}.txt"
        self._python = python

    @property
    def bin(self) -> Path:
        return self._folder / "bin"

    def prepare(self, wheel: Path) -> None:
        """Create the environment unless it has this Python and the packages of the lock, then install the wheel."""
        stamp = self._folder / "lock.sha256"
        digest = hashlib.sha256(self._lock.read_bytes() + self._python.encode()).hexdigest()
        if not stamp.exists() or stamp.read_text() != digest:
            shutil.rmtree(self._folder, ignore_errors=True)
            subprocess.run([self._python, "-m", "venv", str(self._folder)], check=True)
            self._pip("--require-hashes", "-r", str(self._lock))
            stamp.write_text(digest)
        self._pip("--no-deps", "--force-reinstall", str(wheel))

    def run(
        self, *command: str, folder: Path, environment: Mapping[str, str] | None = None, bound: float = 120
    ) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment or of the system in the folder and return its output; fails if it does."""
        variables = self.variables(environment)
        program = shutil.which(command[0], path=variables["PATH"])
        assert program is not None, f"{command[0]} is not installed"
        ran = subprocess.run(
            [program, *command[1:]],
            cwd=folder,
            env=variables,
            capture_output=True,
            text=True,
            timeout=bound,
            check=False,
        )
        assert ran.returncode == 0, f"{command} failed:\n{ran.stdout}\n{ran.stderr}"
        return ran

    def variables(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        """The variables of a user's shell in which the environment is active, without those of this test run."""
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PILLARBOX", "PYTEST"))
        }
        return {
            **kept,
            "PATH": f"{self.bin}{os.pathsep}{kept['PATH']}",
            "VIRTUAL_ENV": str(self._folder),
            **(more or {}),
        }

    def _pip(self, *arguments: str) -> None:
        install: Sequence[str] = ("install", "--quiet", "--disable-pip-version-check", "--no-input")
        subprocess.run([str(self.bin / "python"), "-m", "pip", *install, *arguments], check=True)


class Typed(NamedTuple):
    """A command of a README."""

    words: list[str]
    variables: dict[str, str]
    """Those that the line sets for the command: `NAME=value command`."""

    def at(self, port: int) -> list[str]:
        """The words with this port of loopback instead of that of the page."""
        return [re.sub(r"(?<=//127\.0\.0\.1:)\d+", str(port), word) for word in self.words]


def typed(folder: Path) -> list[Typed]:
    """Return what the README of an example says to type after `$`, in order."""
    return [typed_line(line) for line in re.findall(r"^\$ (.+)$", _readme(folder), re.MULTILINE)]


def typed_inline(folder: Path, beginning: str) -> Typed:
    """Return the command that begins so and stands as code in the text of the README."""
    [line] = re.findall(rf"`({re.escape(beginning)}[^`\n]*)`", _readme(folder))
    return typed_line(line)


def typed_line(line: str) -> Typed:
    words = shlex.split(line)
    variables = dict(word.split("=", 1) for word in takewhile(_ASSIGNMENT.match, words))
    return Typed(words[len(variables) :], variables)


def _readme(folder: Path) -> str:
    return (folder / "README.md").read_text(encoding="utf-8")


def copy_example(name: str, folder: Path) -> Path:
    """Copy an example into the folder, as a user would."""
    return Path(shutil.copytree(ROOT / "examples" / name, folder / name, ignore=shutil.ignore_patterns("__pycache__")))
