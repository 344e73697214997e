"""A walkthrough types the commands of a page and fails at the first output that differs from the page."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.docs import shell
from tests.docs.walkthrough import Reader

GOOD = """
Save this as `greet.txt`:

```toml
hello
```

```console
$ cat greet.txt
hello
$ echo 0193c2f0-6b1e-7c3a-9f57-3c1d2e4f5a6b waits since 2026-11-15T11:43:23.204117Z for 3.2 s
01a1df04-e917-7292-a45f-e93e1beeb376 waits since 2026-01-01T00:00:00.000000Z for 1.0 s
$ printf 'one\\ntwo\\nthree\\n'
one
…
there$ bash -c 'trap "exit 0" INT; echo ready; read line'
ready
^C
```
"""

WRONG = {
    "another word": "$ echo a\nb\n",
    "a line too many": "$ printf 'a\\nb\\n'\na\n",
    "a line too few": "$ echo a\na\nb\n",
    "a command that fails": "$ false\n",
    "one that fails in another terminal": "there$ false\nthere$ true\n",
    "an end that is none": "there$ cat\n^C\n",
    "a program that never says it": "there$ cat\nhello\n",
}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def follow(home: Path, text: str) -> None:
    page = home.parent / "page.md"
    page.write_text(text, encoding="utf-8")
    Reader(home, {"PATH": os.defpath}, instead={}).follow(page)


def test_a_page_whose_output_matches_is_followed_to_its_end(home: Path) -> None:
    follow(home, GOOD)


@pytest.mark.parametrize("block", WRONG.values(), ids=WRONG.keys())
def test_a_page_whose_output_differs_fails(home: Path, block: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shell, "BOUND", 1.0)
    with pytest.raises(AssertionError):
        follow(home, f"Do this:\n\n```console\n{block}```\n")


def test_a_page_must_say_where_to_save_a_file(home: Path) -> None:
    with pytest.raises(AssertionError, match="where to save"):
        follow(home, "Like this:\n\n```python\npass\n```\n")


def test_a_failed_walkthrough_ends_its_processes(home: Path) -> None:
    with pytest.raises(AssertionError):
        follow(home, "Do this:\n\n```console\nthere$ echo $$ > pid; echo ready; exec cat\nready\n$ false\n```\n")
    assert not Path(f"/proc/{(home / 'pid').read_text().strip()}").exists()
