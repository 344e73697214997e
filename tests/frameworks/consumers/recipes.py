"""The recipes of the page on other frameworks: each is a program that is printed there, and the command to run it."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.docs.pages import ROOT
from tests.servers.debian import GO, GO_AMQP, GO_PQ, NODE, NPM

PAGE = ROOT / "docs" / "how-to" / "consume-with-other-frameworks.md"
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def section(title: str) -> str:
    """The text of one section of the page; '' is what precedes the first."""
    parts = re.split(r"^## (.+)$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(["", *parts[1::2]], parts[::2], strict=True))[title]


def block(title: str, language: str) -> str:
    """The only code block of a language in a section."""
    [found] = [code for kind, code in _FENCE.findall(section(title)) if kind == language]
    return str(found)


def tables() -> list[str]:
    """The tables that the recipes write."""
    return [block("", "sql"), block("Node", "sql")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """A section of the page, and what its program needs."""

    title: str
    language: str
    file: str
    queue: str = "order.placed"
    scheme: str = "amqp"
    """Of the relay's transport."""
    command: Callable[[Path], Sequence[str]]
    """Installs or builds in the folder of the program what it needs, and returns the command to run it."""

    def prepare(self, folder: Path) -> Sequence[str]:
        (folder / self.file).write_text(block(self.title, self.language), encoding="utf-8")
        return self.command(folder)


def _printed(title: str) -> Callable[[Path], Sequence[str]]:
    """The command that the section prints, from the environment of this test run."""

    def command(_: Path) -> Sequence[str]:
        program, *arguments = block(title, "console").removeprefix("$ ").split()
        return [str(Path(sys.executable).with_name(program)), *arguments]

    return command


def _python(_: Path) -> Sequence[str]:
    return [sys.executable, "billing.py"]


def _node(folder: Path) -> Sequence[str]:
    _build([NPM.path(), "install", "--no-audit", "--no-fund", "--silent", "amqplib", "pg"], folder)
    return [NODE.path(), "billing.js"]


def _go(folder: Path) -> Sequence[str]:
    GO_AMQP.path()
    GO_PQ.path()
    _build([GO.path(), "build", "-o", "billing", "billing.go"], folder)
    [query] = re.findall(r"append `(\?\w+=\w+)` to\s`DATABASE_URL`", section("Go"))
    return ["sh", "-c", f'DATABASE_URL="$DATABASE_URL{query}" exec ./billing']


def _build(command: Sequence[str], folder: Path) -> None:
    variables = {"GO111MODULE": "off", "GOPATH": "/usr/share/gocode", "GOCACHE": str(folder / ".cache"), "GOFLAGS": ""}
    done = subprocess.run(
        command, cwd=folder, env=os.environ | variables, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, f"{command} failed:\n{done.stdout}\n{done.stderr}"


RECIPES = [
    Recipe(title="FastStream", language="python", file="billing.py", command=_python),
    Recipe(title="aio-pika", language="python", file="billing.py", command=_python),
    Recipe(title="pika", language="python", file="billing.py", command=_python),
    Recipe(
        title="Celery",
        language="python",
        file="billing.py",
        queue="celery",
        scheme="celery",
        command=_printed("Celery"),
    ),
    Recipe(title="Node", language="javascript", file="billing.js", command=_node),
    Recipe(title="Go", language="go", file="billing.go", command=_go),
]
