"""Pictures are shown somewhere, and a page that shows one fetches nothing from elsewhere."""

import re
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT, name, prose

PICTURES = sorted((ROOT / "docs/pictures").glob("*.svg"))


@pytest.mark.parametrize("picture", PICTURES, ids=name)
def test_a_picture_is_complete_in_itself(picture: Path) -> None:
    text = picture.read_text(encoding="utf-8").replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert re.findall(r"https?://[^\s\"')]+", text) == []


@pytest.mark.parametrize("picture", PICTURES, ids=name)
def test_a_picture_is_shown_on_a_page(picture: Path) -> None:
    assert any(f"{picture.name})" in prose(page) for page in PAGES)


def test_there_are_pictures() -> None:
    assert PICTURES
