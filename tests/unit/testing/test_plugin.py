"""The pytest plugin, in a project of its own: its fixtures, its failures, and that it costs nothing until used."""

import os
import re
import subprocess
import sys
from pathlib import Path


def run_pytest(folder: Path, test: str, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_shop.py").write_text(test, encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:asyncio", "-W", "error", *options]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


SHOP = """
from datetime import timedelta
from pillarbox import Event, Handlers, Outbox

outbox, handlers = Outbox(), Handlers()

def place_order(connection, number):
    outbox.record(connection, Event("order.placed", {"id": number}))

@handlers.on("order.placed", name="mailer")
def mail(event, context):
    if context.attempt == 1:
        raise ValueError("busy")
"""


def test_the_fixtures_work_together(tmp_path: Path) -> None:
    done = run_pytest(
        tmp_path,
        SHOP
        + """
def test_the_order_is_announced(captured_outbox, memory_relay, virtual_clock):
    before = virtual_clock.now()
    with captured_outbox.transaction() as connection:
        place_order(connection, 42)
    captured_outbox.assert_recorded("order.placed", payload__id=42)
    relay = memory_relay(handlers)
    assert relay.run().pending == 1
    virtual_clock.advance("1h")
    relay.run().assert_all_delivered()
    assert virtual_clock.now() - before == timedelta(hours=1)

def test_each_test_has_its_own(captured_outbox):
    captured_outbox.assert_not_recorded()
""",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout


def test_a_failure_ends_in_the_line_of_the_test(tmp_path: Path) -> None:
    done = run_pytest(
        tmp_path,
        SHOP
        + """
def test_the_order_is_announced(captured_outbox):
    with captured_outbox.transaction() as connection:
        place_order(connection, 41)
    captured_outbox.assert_recorded("order.placed", payload__id=42)
""",
    )
    assert done.returncode == 1
    assert "E       AssertionError: no recorded event matches 'order.placed' with payload.id=42" in done.stdout
    assert "payload.id: expected 42, recorded 41" in done.stdout
    assert re.search(r"^test_shop\.py:\d+: AssertionError$", done.stdout, re.MULTILINE)
    assert "recorded.py" not in done.stdout


def test_a_project_that_does_not_use_it_loads_nothing_of_it(tmp_path: Path) -> None:
    done = run_pytest(
        tmp_path,
        """
import sys

def test_of_something_else():
    loaded = {name for name in sys.modules if name.split(".")[0] in ("pillarbox", "asyncpg", "hypothesis.core")}
    assert loaded == {"pillarbox", "pillarbox.lazy_names", "pillarbox.testing", "pillarbox.testing.plugin"}
""",
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_fixtures_are_listed_with_what_they_are_for(tmp_path: Path) -> None:
    done = run_pytest(tmp_path, "", "--fixtures")
    for fixture in ("captured_outbox", "memory_relay", "virtual_clock"):
        assert f"{fixture} -- " in done.stdout
