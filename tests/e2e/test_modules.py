"""`pip install pillarbox` alone: every module can be imported, or says in one line what to install."""

import json
from pathlib import Path

import pytest

from tests.e2e.running import must_run

SCRIPT = """
import importlib, json, pkgutil, sys
import pillarbox

found = {}
for module in pkgutil.walk_packages(pillarbox.__path__, "pillarbox.", onerror=lambda name: None):
    if module.name.startswith("pillarbox.ops.") or module.name == "pillarbox.__main__":
        continue  # the command line, which names its extra itself, and no module to import
    try:
        importlib.import_module(module.name)
        found[module.name] = ""
    except Exception as error:
        found[module.name] = f"{type(error).__name__}: {error}"
json.dump(found, sys.stdout)
"""


@pytest.fixture(scope="module")
def imported(bare: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Module → why it could not be imported, without any library."""
    errors: dict[str, str] = json.loads(
        must_run([bare / "python", "-I", "-c", SCRIPT], tmp_path_factory.mktemp("bare"))
    )
    return errors


def test_every_module_imports_or_says_what_to_install(imported: dict[str, str]) -> None:
    assert len(imported) > 200
    silent = {name: error for name, error in imported.items() if error and 'pip install "pillarbox[' not in error}
    assert silent == {}


@pytest.mark.parametrize(
    "module",
    ["pillarbox.testing", "pillarbox.testing.capture", "pillarbox.testing.cases", "pillarbox.testing.servers"],
)
def test_helpers_for_unittest_need_no_library(imported: dict[str, str], module: str) -> None:
    assert imported[module] == ""


def test_the_plugin_names_its_extra(imported: dict[str, str]) -> None:
    assert imported["pillarbox.testing.plugin"] == (
        'ImportError: the plugin needs pytest: pip install "pillarbox[testing]"'
    )
