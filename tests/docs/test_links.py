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


def test_every_page_is_in_an_index() -> None:
    linked = {(page.parent / target).resolve() for page in PAGES for target in LINK.findall(prose(page))}
    lost = [name(page) for page in PAGES if page.parent != ROOT and page.resolve() not in linked]
    assert lost == []
