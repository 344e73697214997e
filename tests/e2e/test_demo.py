"""The demo from the wheel: nothing but the command line's extra, outside the source tree, no server."""

from __future__ import annotations

import json
from pathlib import Path

from tests.e2e.running import must_run


def test_the_demo_runs_from_the_wheel(with_cli: Path, tmp_path: Path) -> None:
    found = json.loads(must_run([with_cli / "pillarbox", "demo", "--seconds", "5", "--kill", "--json"], tmp_path))
    assert found["ok"], found["failures"]
    assert found["committed"] > 0
    assert found["kills"] == 1
    assert list(tmp_path.iterdir()) == []


def test_the_environment_of_the_demo_has_no_engine(with_cli: Path, tmp_path: Path) -> None:
    names = ("asyncpg", "pika", "sqlalchemy")
    script = f"from importlib.util import find_spec; print([name for name in {names} if find_spec(name)])"
    assert must_run([with_cli / "python", "-I", "-c", script], tmp_path) == "[]\n"
