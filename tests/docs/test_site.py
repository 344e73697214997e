"""`make docs` builds a site of every page: links and anchors are valid, and no page loads anything from elsewhere."""

import ast
import json
import os
import re
import runpy
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import griffe
import pytest

from tests.console.serving import chromium
from tests.docs.pages import PAGES, ROOT, name
from tests.servers.availability import available


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    build = ["build", "--strict", "--config-file", "docs/site/mkdocs.yml", "--site-dir", str(folder)]
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", *build],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
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


BLOCK = re.compile(r"^ *```python\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
REFERENCE = runpy.run_path(str(ROOT / "docs/site/python_reference.py"))
MODULES = {**REFERENCE["MODULES"], **REFERENCE["integrations"](ROOT)}


@pytest.mark.parametrize("module", MODULES)
def test_the_python_reference_describes_every_public_name(site: Path, module: str) -> None:
    names = REFERENCE["public_names"](ROOT, module)
    page = (site / "docs/reference/python" / module / "index.html").read_text(encoding="utf-8")
    assert names
    assert [name for name in names if f'id="{module}.{name}"' not in page] == []


def imported_from_pillarbox(page: Path) -> Iterator[tuple[str, str]]:
    """Module and name of each import in the examples of a page; the name is "" where the module is imported."""
    for block in BLOCK.findall(page.read_text(encoding="utf-8")):
        for node in ast.walk(ast.parse(textwrap.dedent(block))):
            if isinstance(node, ast.ImportFrom):
                found = [(node.module or "", alias.name) for alias in node.names]
            elif isinstance(node, ast.Import):
                found = [(alias.name, "") for alias in node.names]
            else:
                continue
            yield from (one for one in found if one[0].split(".")[0] == "pillarbox")


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_the_python_reference_has_every_name_that_a_page_imports(page: Path) -> None:
    missing = [
        (module, imported)
        for module, imported in imported_from_pillarbox(page)
        if f"{module}.{imported}" not in MODULES
        and (module not in MODULES or imported not in ("", *REFERENCE["public_names"](ROOT, module)))
    ]
    assert missing == []


def test_pages_import_from_pillarbox() -> None:
    assert len({module for page in PAGES for module, _ in imported_from_pillarbox(page)}) > 20


def test_every_public_name_has_a_docstring() -> None:
    package = griffe.load("pillarbox", search_paths=[ROOT / "src"], resolve_aliases=True)
    assert isinstance(package, griffe.Module)
    undocumented = [
        f"{module}.{public}"
        for module in MODULES
        for public in REFERENCE["public_names"](ROOT, module)
        if not package[f"{module}.{public}".removeprefix("pillarbox.")].has_docstring
    ]
    assert undocumented == []


def test_settings_appear_in_the_python_reference_with_default_and_help(site: Path) -> None:
    page = (site / "docs/reference/python/pillarbox/index.html").read_text(encoding="utf-8")
    text = re.sub(r"<[^>]*>", "", page)
    assert "The longest delay between two probes." in text
    assert "setting(" not in text


def test_code_is_highlighted_and_pages_can_be_searched(site: Path) -> None:
    page = (site / "docs/how-to/record-events/index.html").read_text(encoding="utf-8")
    assert re.search(r'<span class="kn">from</span>.*<span class="nn">pillarbox</span>', page)
    assert '"content.code.copy"' in page
    found = json.loads((site / "search/search_index.json").read_text(encoding="utf-8"))["docs"]
    texts = [one["text"] for one in found if one["location"].startswith("docs/how-to/record-events/")]
    assert any("transaction" in text for text in texts)


def test_the_copy_button_copies_commands_without_prompts_and_output(site: Path) -> None:
    # The theme marks the code while it reads the text to copy.
    copied = "code => { code.setAttribute('data-md-copying', ''); return code.innerText; }"
    with available(chromium) as browser:
        page = browser.new_page()
        page.goto((site / "docs/how-to/backup-and-recovery/index.html").as_uri())
        code = page.locator(".highlight code", has_text="destinations pause").first
        assert "every destination: paused" in code.inner_text()
        assert code.evaluate(copied).split("\n")[0] == "pillarbox destinations pause --yes"
        assert "paused" not in code.evaluate(copied)


@pytest.mark.parametrize("folder", ["tutorial", "how-to", "reference", "explanation"])
def test_the_menu_has_the_order_of_the_index(folder: str) -> None:
    menu = runpy.run_path(str(ROOT / "docs/site/pages.py"))["found"](f"docs/{folder}/*.md")
    index = (ROOT / "docs/README.md").read_text(encoding="utf-8")
    assert menu == [f"docs/{target}" for target in re.findall(rf"\]\(({folder}/[\w-]+\.md)\)", index)]
