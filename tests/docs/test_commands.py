"""Every `pillarbox` command in the documentation, in messages and in deploy/ is one that the command line takes.

Every settings file loads.
"""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from pathlib import Path

import click
import pytest

from pillarbox.ops.cli.root import pillarbox
from tests.docs.pages import PAGES, ROOT, blocks, name
from tests.unit.ops.settings.loading import load

_TYPED = re.compile(r"^ *(?:\w*\$ )?(?:[A-Z_]+=\S+ )*(pillarbox .+)$", re.MULTILINE)
_REST = re.compile(r" +(?:\||&&|;|\d?>|<|#).*$")
_MENTIONED = re.compile(r"`(pillarbox [^`\[…|]+)`")


def typed() -> set[str]:
    """What the reader is to type, without pipes and comments."""
    shown = "\n".join(block for page in PAGES for language in ("console", "") for block in blocks(page, language))
    return {_REST.sub("", command) for command in _TYPED.findall(shown)}


def mentioned() -> set[str]:
    """What stands as code in a text, where it may be broken over two lines and lack what an option wants."""
    found = [words for text in texts() for words in _MENTIONED.findall(text)]
    return {_REST.sub("", " ".join(words.split())) for words in found}


def texts() -> Iterator[str]:
    """What operators read: pages, alerts and other files of deploy/, and the messages and templates of the package."""
    deployed = [path for path in (ROOT / "deploy").rglob("*") if path.is_file()]
    for path in (*PAGES, *deployed, *(ROOT / "src").rglob("*.html")):
        yield path.read_text("utf-8")
    for path in (ROOT / "src").rglob("*.py"):
        yield from literals(ast.parse(path.read_text("utf-8")))


def literals(tree: ast.AST) -> Iterator[str]:
    """The strings of a module; X stands for what an f-string inserts."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(literal(part) or "X" for part in node.values)
        else:
            yield literal(node)


def literal(node: ast.AST) -> str:
    value = getattr(node, "value", None)
    return value if isinstance(value, str) else ""


def parse(words: list[str]) -> None:
    """Raises UsageError, or KeyError for a command that is not there."""
    command: click.Command = pillarbox
    context = click.Context(command)
    while isinstance(command, click.Group):
        _, words, _ = command.make_parser(context).parse_args(words)
        if not words:
            return  # the name of a group
        child = command.get_command(context, words[0])
        if child is None:
            raise KeyError(words[0])
        command, context, words = child, click.Context(child, parent=context), words[1:]
    _, extra, _ = command.make_parser(context).parse_args(words)
    if extra:
        raise click.UsageError(f"too many words: {extra}")


@pytest.mark.parametrize("command", sorted(typed() | mentioned()))
def test_a_documented_command_is_accepted(command: str) -> None:
    lenient = command not in typed()
    with suppress(click.BadOptionUsage) if lenient else nullcontext():
        parse(shlex.split(command)[1:])


@pytest.mark.parametrize("command", ["stats", "events lost", "status --max-wage 60s", "status now", "status --max-age"])
def test_an_unknown_command_is_detected(command: str) -> None:
    with pytest.raises((click.UsageError, KeyError)):
        parse(command.split())


def extras(page: Path) -> set[str]:
    """What the page says to install with Pillarbox."""
    found = re.findall(r"pip install [^\n`]*?pillarbox\[([\w,]+)\]", page.read_text(encoding="utf-8"))
    return {extra for group in found for extra in group.split(",")}


GUIDES = [page for page in PAGES if page.parent.name in ("how-to", "tutorial") and extras(page)]


@pytest.mark.parametrize("page", GUIDES, ids=name)
def test_a_guide_with_commands_installs_the_command_line(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    if _TYPED.search("\n".join(blocks(page, "console"))) or "`pillarbox schema apply`" in text:
        assert extras(page) & {"cli", "django"}


def test_there_are_commands() -> None:
    assert len(typed()) > 40


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "toml")], ids=name)
def test_the_settings_on_a_page_are_settings(page: Path, tmp_path: Path) -> None:
    for number, block in enumerate(blocks(page, "toml")):
        (tmp_path / f"{number}.toml").write_text(block)
        load(tmp_path / f"{number}.toml")
