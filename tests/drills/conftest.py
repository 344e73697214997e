"""What every drill needs."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """For ledgers, logs and the report of a drill."""
    (tmp_path / "drill").mkdir()
    return tmp_path / "drill"
