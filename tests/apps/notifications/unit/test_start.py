"""How fast a process starts is what it imports: the API and the migration alone load what they alone need."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize("library", ["fastapi", "alembic"])
def test_a_process_that_needs_no_such_library_does_not_load_it(library: str) -> None:
    look = f"import sys, apps.notifications.__main__; sys.exit({library!r} in sys.modules)"
    subprocess.run([sys.executable, "-c", look], check=True, timeout=120)
