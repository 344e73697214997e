"""Links inside the documentation lead somewhere, and every page can be reached from its index."""

import re
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT, name, prose

LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_have_targets(page: Path) -> None:
    broken = [target for target in LINK.findall(prose(page)) if not (page.parent / target).exists()]
    assert not broken


def test_the_evidence_of_each_convention_exists() -> None:
    page = (ROOT / "docs/explanation/conventions.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1:-1] for line in page.splitlines() if line.startswith("| ") and line.count("|") == 9]
    evidence = {row[0].strip(): re.findall("`([^`]+)`", row[2]) for row in rows if row[0].strip() != "convention"}
    assert len(evidence) == 22
    assert [name for name, paths in evidence.items() if not paths] == []
    assert [path for paths in evidence.values() for path in paths if not (ROOT / path).exists()] == []


def test_every_page_is_in_an_index() -> None:
    linked = {(page.parent / target).resolve() for page in PAGES for target in LINK.findall(prose(page))}
    lost = [name(page) for page in PAGES if page.parent != ROOT and page.resolve() not in linked]
    assert lost == []
