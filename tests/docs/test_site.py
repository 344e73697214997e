"""`make docs` builds a site of every page: links and anchors are valid, and no page loads anything from elsewhere."""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT, name


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    build = ["build", "--strict", "--config-file", "docs/site/mkdocs.yml", "--site-dir", str(folder)]
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", *build], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_page_is_in_it(site: Path, page: Path) -> None:
    path = page.relative_to(ROOT).with_suffix("")
    assert (site / (path.parent if path.name == "README" else path) / "index.html").is_file()


def test_no_page_fetches_anything_from_elsewhere(site: Path) -> None:
    fetched = re.compile(r"""<(?:script|img|link|iframe)\b[^>]*(?:src|href)=["'](?:https?:)?//[^"']+""")
    pages = list(site.rglob("*.html"))
    assert len(pages) > len(PAGES)
    assert [match for page in pages for match in fetched.findall(page.read_text(encoding="utf-8"))] == []
    styles = "".join(file.read_text(encoding="utf-8") for file in site.rglob("*.css"))
    assert re.findall(r"""(?:url\(|@import)\s*["']?(?:https?:)?//[^)"']+""", styles) == []


@pytest.mark.parametrize("folder", ["tutorial", "how-to", "reference", "explanation"])
def test_the_menu_has_the_order_of_the_index(folder: str) -> None:
    menu = runpy.run_path(str(ROOT / "docs/site/pages.py"))["found"](f"docs/{folder}/*.md")
    index = (ROOT / "docs/README.md").read_text(encoding="utf-8")
    assert menu == [f"docs/{target}" for target in re.findall(rf"\]\(({folder}/[\w-]+\.md)\)", index)]
