"""Settings files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Writes `pillarbox.toml` into the current folder, so that errors use that name."""
    monkeypatch.chdir(tmp_path)

    def written(text: str) -> Path:
        file = Path("pillarbox.toml")
        file.write_text(text, encoding="utf-8")
        return file

    return written
