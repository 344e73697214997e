"""A process imports only what it needs, so that it starts fast: FastAPI only in the API, Alembic only to migrate."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize("library", ["fastapi", "alembic"])
def test_the_command_line_does_not_import_heavy_libraries(library: str) -> None:
    code = f"import sys, apps.notifications.__main__; sys.exit({library!r} in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
