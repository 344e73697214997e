"""A page of the tutorial as steps, done in the order they stand there, as a reader does them.

Save this as `shop.py`:      a block after a line that ends so is a file in the current folder
$ command                    typed in the first terminal, and must succeed
relay$ command               typed in the terminal of that name; it may go on running
anything else                what that command shows, `…` for what differs from time to time
^C                           Ctrl-C in that terminal, which must end well
`relay$` … :                 a block without a command goes on with what the terminal named before it shows
"""

from __future__ import annotations

import os
import re
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from tests.docs.pages import ROOT
from tests.docs.shell import BOUND, Shell
from tests.servers.waiting import wait_until

_BLOCK = re.compile(r"([^\n]*)\n+```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_CONSOLE = re.compile(r"^```console\n.*?^```$", re.MULTILINE | re.DOTALL)
_SECTION = re.compile(r"^## (.+)\n", re.MULTILINE)
_FILE = re.compile(r"`([\w./]+)`:$")
_TERMINAL = re.compile(r"`(\w+)\$`")
_COMMAND = re.compile(r"(\w*)\$ (.+)")
_CHANGING = re.compile(  # ids, times, spans
    r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z|\d+\.\d s\b|…"
)
_PAUSE = 0.2
_REPEATABLE = re.compile(r"pillarbox (status|events|dead list)\b")


@dataclass(slots=True, kw_only=True)
class File:
    """A file to be saved."""

    name: str
    content: str


@dataclass(slots=True, kw_only=True)
class Turn:
    """Something typed in a terminal, and what it shows. No command: the last one goes on."""

    terminal: str
    command: str = ""
    shows: list[str] = field(default_factory=list)

    @property
    def pattern(self) -> str:
        """What the screen must match. Room between words does not count; `…` alone stands for any lines."""
        return "".join("(?:.*\n)*" if line == "…" else f"{_pattern(line)}\n" for line in self.shows if line.strip())


def commands_by_section(page: Path) -> dict[str, str]:
    """The console blocks of each section that has any; "" is what stands before the first section."""
    title, *sections = _SECTION.split(page.read_text(encoding="utf-8"))
    found = {"": title} | dict(zip(sections[::2], sections[1::2], strict=True))
    return {
        name: "".join(f"\n\n{block}\n" for block in _CONSOLE.findall(text))
        for name, text in found.items()
        if _CONSOLE.search(text)
    }


def steps(page: str) -> Iterator[File | Turn]:
    """The commands and files of the page, in order."""
    for before, language, content in _BLOCK.findall(page):
        if language == "console":
            yield from _turns(before, content)
        elif named := _FILE.search(before):
            yield File(name=named[1], content=content)
        else:
            raise AssertionError(f"the reader is not reported where to save this {language}:\n{content}")


def _turns(before: str, content: str) -> Iterator[Turn]:
    named = _TERMINAL.search(before)
    turn = Turn(terminal=named[1]) if named else None
    for line in content.splitlines():
        if typed := _COMMAND.fullmatch(line):
            if turn and (turn.command or turn.shows):
                yield turn
            turn = Turn(terminal=typed[1], command=typed[2])
        elif turn is None:
            raise AssertionError(f"in which terminal is this shown?\n{content}")
        else:
            turn.shows.append(line)
    if turn:
        yield turn


def environment(home: Path) -> dict[str, str]:
    """That of a new user for whom `pip install` finds everything in the environment of the tests, and no index."""
    return {
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "PATH": os.pathsep.join([f"{sys.base_prefix}/bin", "/usr/bin", "/bin", sysconfig.get_path("scripts")]),
        "PIP_NO_INDEX": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), sysconfig.get_path("purelib")]),
        "VIRTUAL_ENV_DISABLE_PROMPT": "1",
    }


class Reader:
    """Follows a page in a home folder, with as many terminals as the page uses."""

    def __init__(
        self,
        home: Path,
        environment: Mapping[str, str],
        *,
        instead: Mapping[str, str],
        repeatable: re.Pattern[str] = _REPEATABLE,
    ) -> None:
        """`instead`: addresses that differ here from those on the page.

        `repeatable`: commands that may be repeated until they show what the page shows.
        """
        self._home = home
        self._repeatable = repeatable
        self._environment = environment
        self._instead = instead
        self._terminals: dict[str, Shell] = {}
        self._seen: dict[str, int] = {}
        self._open = ExitStack()

    def follow(self, page: Path) -> None:
        """Follow the page. Raises AssertionError at the first difference."""
        self.follow_text(page.read_text(encoding="utf-8"))

    def follow_text(self, text: str) -> None:
        """Follow a part of a page."""
        with self._open:
            for step in steps(self._here(text)):
                if isinstance(step, File):
                    (self._folder() / step.name).write_text(step.content, encoding="utf-8")
                else:
                    self._take(step)

    def _here(self, text: str) -> str:
        for there, here in self._instead.items():
            text = text.replace(there, here)
        return text

    def _folder(self) -> Path:
        """Where the first terminal is."""
        shell = self._terminal("")
        shell.type("pwd")
        assert shell.wait_for(shell.idle)
        return Path(shell.screen.strip())

    def _terminal(self, name: str) -> Shell:
        if name not in self._terminals:
            self._terminals[name] = self._open.enter_context(Shell(self._home, self._environment))
        return self._terminals[name]

    def _take(self, turn: Turn) -> None:
        shell = self._terminal(turn.terminal)
        ends = turn.shows[-1:] == ["^C"]
        if ends:
            turn.shows.pop()
        if turn.command:
            assert shell.wait_for(shell.idle), f"{turn.terminal}$ is busy: {shell.screen}"
            assert not shell.status, f"what ran before in {turn.terminal}$ ended with {shell.status}:\n{shell.screen}"
            self._seen[turn.terminal] = 0
            shell.type(turn.command)
        if turn.terminal:
            self._go_on(shell, turn)
        else:
            self._to_its_end(shell, turn)
        if ends:
            shell.interrupt()
            assert shell.wait_for(shell.idle), _differs(turn, shell)
        assert not shell.status, f"{turn.command} ended with {shell.status}:\n{shell.screen}"

    def _to_its_end(self, shell: Shell, turn: Turn) -> None:
        """Repeat a read-only command until it shows what the page shows: a reader types more slowly."""

        def shows_what_the_page_shows() -> bool:
            assert shell.wait_for(shell.idle), _differs(turn, shell)
            if not turn.shows or re.fullmatch(turn.pattern, _text(shell)):
                return True
            assert self._repeatable.match(turn.command), _differs(turn, shell)
            shell.type(turn.command)
            return False

        try:
            # The pause leaves the CPU to what the repeated commands wait for.
            wait_until(shows_what_the_page_shows, bound=BOUND, what=turn.command, pause=_PAUSE)
        except TimeoutError as error:
            raise AssertionError(_differs(turn, shell)) from error

    def _go_on(self, shell: Shell, turn: Turn) -> None:
        """The command may not end: compare what it has shown since the last turn."""

        def shown() -> re.Match[str] | None:
            return re.compile(turn.pattern).match(_text(shell), self._seen[turn.terminal])

        assert shell.wait_for(lambda: shown() is not None), _differs(turn, shell)
        if found := shown():
            self._seen[turn.terminal] = found.end()


def _text(shell: Shell) -> str:
    return "".join(f"{_squeezed(line)}\n" for line in shell.screen.splitlines() if line.strip())


def _pattern(line: str) -> str:
    parts: list[str] = []
    last = 0
    squeezed = _squeezed(line)
    for changing in _CHANGING.finditer(squeezed):
        parts += [re.escape(squeezed[last : changing.start()]), ".*"]
        last = changing.end()
    return "".join([*parts, re.escape(squeezed[last:])])


def _squeezed(line: str) -> str:
    return " ".join(line.split())


def _differs(turn: Turn, shell: Shell) -> str:
    return "\n".join(
        [f"{turn.terminal}$ {turn.command}", "--- the page shows", *turn.shows, "--- the screen shows", shell.screen]
    )
