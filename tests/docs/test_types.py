"""Every Python block of the documentation passes mypy and pyright in strict mode: an editor shows no error in it."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT, blocks, name

TYPED = [*PAGES, *sorted((ROOT / "apps").rglob("*.md"))]


@pytest.fixture(scope="module")
def snippets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with each block as a file."""
    folder = tmp_path_factory.mktemp("snippets")
    for page in TYPED:
        for number, code in enumerate(blocks(page, "python"), 1):
            stem = name(page).removesuffix(".md").replace("/", "_").replace("-", "_")
            (folder / f"{stem}_{number}.py").write_text(code, encoding="utf-8")
    return folder


def test_every_fence_of_python_is_a_block() -> None:
    """A fence that is indented or has a title would not be checked."""
    for page in TYPED:
        fences = re.findall(
            r"^\s*(?:```|~~~)\s*(?:py|python3?|pycon)\b", page.read_text(encoding="utf-8"), re.MULTILINE
        )
        assert len(fences) == len(blocks(page, "python")), name(page)


def test_mypy_accepts_every_block(snippets: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), *map(str, snippets.glob("*.py"))],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_pyright_accepts_every_block(snippets: Path) -> None:
    settings = {
        "include": [str(snippets)],
        "extraPaths": [str(ROOT / "src"), str(ROOT)],
        "venvPath": str(Path(sys.prefix).parent),
        "venv": Path(sys.prefix).name,
        "pythonVersion": "3.11",
        "typeCheckingMode": "strict",
        "reportDeprecated": False,
    }
    (snippets / "pyrightconfig.json").write_text(json.dumps(settings))
    done = subprocess.run(
        [sys.executable, "-m", "tests.pyright", "-p", str(snippets)],
        cwd=ROOT,
        env=os.environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
