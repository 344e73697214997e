"""The README: its sections, its guarantees, its example, its commands; and the tests that show each guarantee."""

from __future__ import annotations

import re
import runpy
import sqlite3
import tomllib
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from pillarbox.testing.waiting import eventually
from tests.docs.nodes import NODE, exists
from tests.docs.pages import ROOT, blocks

PATH = ROOT / "README.md"
PAGE = PATH.read_text(encoding="utf-8")
GUARANTEES = re.findall(r"^(\d)\. \*\*(.+?)\.\*\*", PAGE, re.MULTILINE)
PROOFS = (ROOT / "docs/explanation/guarantees.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (.+)\n((?:(?!## ).*\n)*)", PROOFS, re.MULTILINE))
CLAIMS = re.findall(r"^\| (.+?) \| (`(?:tests|src)/.+) \|$", PROOFS, re.MULTILINE)


def test_the_readme_says_first_what_it_is_and_for_whom() -> None:
    assert re.findall(r"^## (.+)$", PAGE, re.MULTILINE)[:5] == [
        "Who it is for",
        "When not to use it",
        "Features",
        "Guarantees",
        "Example: FastAPI",
    ]


def test_every_guarantee_has_a_section_that_names_tests() -> None:
    assert [number for number, _ in GUARANTEES] == [str(number) for number in range(1, 9)]
    for number, title in GUARANTEES:
        assert re.search(r"`(?:tests|src)/", SECTIONS[f"{number}. {title}"])


def test_every_claim_names_tests_that_exist() -> None:
    tables = [line for section in SECTIONS.values() for line in _rows(section, "| claim | test |")]
    assert len(tables) == len(CLAIMS) > 40
    nodes = [node for _, tests in CLAIMS for node in NODE.findall(tests)]
    assert len(nodes) > 35
    assert [node for node in nodes if not exists(node)] == []


def _rows(section: str, heading: str) -> list[str]:
    """The rows of the table under a heading."""
    _, found, table = section.partition(f"{heading}\n|---|---|\n")
    return table.split("\n\n")[0].splitlines() if found else []


def test_a_missing_test_is_detected() -> None:
    assert not exists("tests/docs/test_readme.py::test_of_nothing")
    assert not exists("tests/docs/test_of_nothing.py::test_a_missing_test_is_detected")


async def test_the_fastapi_example_delivers_a_committed_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    [code] = blocks(PATH, "python")
    (tmp_path / "shop.py").write_text(code, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    shop = runpy.run_path("shop.py")
    app, shown = shop["app"], ""

    async def receipt() -> bool:
        nonlocal shown
        shown += capsys.readouterr().out
        return bool(shown)

    client = httpx.AsyncClient(transport=httpx.ASGITransport(app, raise_app_exceptions=False), base_url="http://shop")
    async with app.router.lifespan_context(app), client:
        assert (await client.post("/orders/42")).status_code == 201
        assert await eventually(receipt)
        assert (await client.post("/orders/42")).status_code == 500  # the order exists: neither a row nor an event
    shop["engine"].dispose()
    assert shown == "receipt for order 42\n"
    with closing(sqlite3.connect("shop.db")) as database:
        assert database.execute("SELECT key, status FROM outbox_event").fetchall() == [("order:42", "PUBLISHED")]


def test_the_make_targets_exist() -> None:
    targets = re.findall(r"^([\w-]+):.*## ", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    typed = re.findall(r"^\$ make ([\w-]+)", "\n".join(blocks(PATH, "console")), re.MULTILINE)
    assert typed == ["demo", "test"]
    assert set(re.findall(r"`make ([\w-]+)", PAGE)) | set(typed) <= set(targets)


def test_the_extras_exist() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    named = {extra for group in re.findall(r"pillarbox\[([\w,]+)\]", PAGE) for extra in group.split(",")}
    assert named
    assert named <= set(extras)


def test_the_demo_and_the_console_are_shown() -> None:
    assert "](docs/pictures/demo.svg)" in PAGE
    assert "](docs/pictures/console-overview.png)" in PAGE
