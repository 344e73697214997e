"""Every Python block of the documentation runs as it stands in an empty folder; the tutorial's run in their order."""

import os
import re
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import NoReturn

import pytest

from pillarbox.testing.servers import MissingServer
from tests.docs.pages import PAGES, blocks, name
from tests.servers.availability import available

ELSEWHERE = {"docs/how-to/consume-with-other-frameworks.md"}
"""Pages whose programs need servers and do not end: tests/frameworks runs them."""

SNIPPETS = [
    (name(page), number, code)
    for page in PAGES
    if page.parent.name != "tutorial" and name(page) not in ELSEWHERE
    for number, code in enumerate(blocks(page, "python"), 1)
]


@pytest.mark.parametrize(("page", "number", "code"), SNIPPETS, ids=[f"{page}-{number}" for page, number, _ in SNIPPETS])
def test_a_snippet_runs(page: str, number: int, code: str, tmp_path: Path) -> None:
    script = tmp_path / "test_snippet.py"
    script.write_text(code, encoding="utf-8")
    is_test = "class Test" in code or "def test_" in code
    pytest_call = ["-m", "pytest", "-q", "-o", "asyncio_mode=auto", "-p", "no:cacheprovider", str(script)]
    result = subprocess.run(
        [sys.executable, *(pytest_call if is_test else [str(script)])],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    if (missing := re.search(r"MissingServer: (.+)", result.stdout)) is not None:
        available(partial(_raise, MissingServer(missing[1])))
    assert result.returncode == 0, f"block {number} of {page}:\n{result.stdout}\n{result.stderr}"


def _raise(error: Exception) -> NoReturn:
    raise error
