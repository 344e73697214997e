"""What browsers are given comes from us alone, and obeys the policy that we send with it."""

import re
from pathlib import Path

import pytest

import pillarbox.ops.console

FOLDER = Path(pillarbox.ops.console.__file__).parent
FILES = sorted(path for path in (FOLDER / "static").rglob("*") if path.suffix in (".js", ".css", ".svg"))
TEMPLATES = sorted((FOLDER / "templates").glob("*.html"))
_OURS = ("http://www.w3.org/2000/svg", "https://github.com/leeoniya/uPlot")
"""A namespace, and a comment that its licence is next to."""


@pytest.mark.parametrize("path", [*FILES, *TEMPLATES], ids=lambda path: path.name)
def test_no_link_leads_to_another_site(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    found = re.findall(r"(?:https?:)?//[a-z][a-z0-9.-]+\.[a-z]{2,}[^\s\"')]*", text)
    assert [url for url in found if not url.startswith(_OURS)] == []
    assert "sourceMappingURL" not in text


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_a_template_has_neither_script_nor_style_nor_handler_of_its_own(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert re.findall(r"<script(?![^>]* src=)|<style|\sstyle=|\son[a-z]+=|javascript:", text) == []
    assert re.findall(r"\|\s*safe\b|autoescape false|Markup", text) == []


@pytest.mark.parametrize("name", ["htmx", "uPlot"])
def test_third_party_files_have_their_licence(name: str) -> None:
    assert (FOLDER / "static/vendor" / f"{name}.LICENSE").stat().st_size > 500


def test_htmx_runs_nothing_that_a_page_says() -> None:
    frame = (FOLDER / "templates/frame.html").read_text(encoding="utf-8")
    assert '"allowEval":false' in frame
    assert '"includeIndicatorStyles":false' in frame
