"""Runs the commands of an application's README as on a new machine: a copy of the tree, an empty home, no servers.

It types every command in a `console` block, in order. A command whose output the page shows is repeated until that
output appears, because a user types slower.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sysconfig
from collections.abc import Mapping
from pathlib import Path

from tests.docs.walkthrough import Reader, Turn, steps

ROOT = Path(__file__).resolve().parents[2]
REPEATABLE = re.compile(r"""psql|curl -s (-H "[^"]*" )?"?http|grep|tail""")
_CONSOLE = re.compile(r"^```console\n.*?^```$", re.MULTILINE | re.DOTALL)
_CONTINUED = re.compile(r" *\\\n *")
_SERVERS = "make servers"
_POSTGRES, _RABBITMQ = "postgresql://postgres@127.0.0.1:5432/postgres", "amqp://guest:guest@127.0.0.1:5672/"


def commands(page: Path) -> str:
    """The console blocks of a page, each command on one line."""
    found = _CONSOLE.findall(page.read_text(encoding="utf-8"))
    return "".join("\n\n" + _CONTINUED.sub(" ", block) + "\n" for block in found)


class NewUser(Reader):
    """Replaces the server addresses of the page by those that `make servers` printed."""

    def __init__(self, tree: Path, home: Path, *, instead: Mapping[str, str], **variables: str) -> None:
        super().__init__(tree, _environment(tree, home) | variables, instead=instead, repeatable=REPEATABLE)
        self._servers: dict[str, str] = {}

    def follow(self, page: Path) -> None:
        with self._open:
            for step in steps(self._here(commands(page))):
                assert isinstance(step, Turn)
                self._take(step)

    def _take(self, turn: Turn) -> None:
        for there, here in self._servers.items():
            turn.command = turn.command.replace(there, here)
            turn.shows = [line.replace(there, here) for line in turn.shows]
        super()._take(turn)
        if turn.command.startswith(_SERVERS):
            screen = self._terminal(turn.terminal).screen
            for there, pattern in ((_POSTGRES, r"postgresql://\S+"), (_RABBITMQ, r"amqp://\S+")):
                [found] = re.findall(pattern, screen)
                self._servers[there] = found


def _environment(tree: Path, home: Path) -> dict[str, str]:
    """The environment of a new user, except that the locked packages are installed."""
    return {
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "PATH": os.pathsep.join(["/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin"]),
        "PYTHONPATH": os.pathsep.join([str(tree / "src"), str(tree)]),
        "VIRTUAL_ENV_DISABLE_PROMPT": "1",
    }


def fresh_tree(folder: Path) -> Path:
    """A copy of the files under version control, with an environment that `make venv` finds up to date."""
    tree = folder / "pillarbox"
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tree / name)
    (tree / ".venv").symlink_to(Path(sysconfig.get_path("scripts")).parent)
    for file in (*(tree / "requirements").glob("*.txt"), tree / "pyproject.toml"):
        os.utime(file, (0, 0))
    # Else a command of the page would install packages into the environment in which other tests run.
    subprocess.run(["make", "--question", "venv"], cwd=tree, check=True)
    return tree
