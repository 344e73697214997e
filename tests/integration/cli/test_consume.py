"""Errors of `pillarbox consume` for an invalid consumer."""

from pathlib import Path

import pytest

from tests.integration.cli.running import pillarbox

MODULE = """
from pillarbox import Consumer
from pillarbox.stores.memory import MemoryStore
from pillarbox.transports.memory_source import MemorySource

nothing = 42
sourceless = Consumer(name="billing", transaction=MemoryStore().transaction)
idle = Consumer(MemorySource(), name="billing", transaction=MemoryStore().transaction)
"""


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("billing", "does not name an object; write MODULE:OBJECT"),
        ("elsewhere:consumer", "there is no module 'elsewhere'"),
        ("shop:consumer", "module 'shop' has no object 'consumer'"),
        ("shop:nothing", "shop:nothing is a int, not Consumer"),
        ("shop:sourceless", "consumer billing has no source to run on"),
        ("shop:idle", "consumer billing has no handler"),
    ],
)
def test_an_invalid_consumer_is_a_usage_error_of_one_line(tmp_path: Path, path: str, says: str) -> None:
    (tmp_path / "shop.py").write_text(MODULE)
    done = pillarbox("consume", path, cwd=tmp_path)
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr
