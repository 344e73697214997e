"""docs/how-to/test-your-service.md: its tests run with the wheel, pytest, pytest-asyncio and pytest-django."""

import re
from pathlib import Path

import pytest

from pillarbox import Event, Outbox
from pillarbox.testing import CapturedOutbox
from pillarbox.testing.servers import binaries
from tests.docs.pages import blocks
from tests.frameworks.conftest import MakeEnvironment
from tests.frameworks.environment import ROOT
from tests.servers.availability import available

PAGE = ROOT / "docs/how-to/test-your-service.md"
SETTINGS = """
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "shop.db"}}
INSTALLED_APPS = ["pillarbox.integrations.django"]
"""
PYTEST = ("pytest", "-p", "no:cacheprovider", "-W", "error", "-o", "asyncio_default_fixture_loop_scope=function")
BLOCKS = blocks(PAGE, "python")
[SERVERS] = [code for code in BLOCKS if "pillarbox_postgres_url" in code]
[DJANGO] = [code for code in BLOCKS if "django.setup()" in code]
[UNITTEST] = [code for code in BLOCKS if "unittest.main()" in code]
FUNCTION = """
import pytest
from test_page import connection, place_order, transaction

@pytest.mark.django_db
def test_an_order_is_announced(captured_outbox):
    place_order(42)
    with pytest.raises(ValueError):
        place_order(-1)
    with transaction.atomic():
        recorded = captured_outbox.read(connection)
    recorded.assert_recorded("order.placed", payload__id=42, count=1)
    recorded.assert_not_recorded(payload__id=-1)
"""


def test_with_pytest_and_pytest_asyncio(environment: MakeEnvironment, tmp_path: Path) -> None:
    for number, code in enumerate(BLOCKS):
        if code not in (SERVERS, DJANGO):
            (tmp_path / f"test_{number}.py").write_text(code, encoding="utf-8")
    done = environment("testing").run(*PYTEST, "-p", "no:django", folder=tmp_path)
    assert re.search(r"\b9 passed", done.stdout), done.stdout


def test_with_unittest(environment: MakeEnvironment, tmp_path: Path) -> None:
    (tmp_path / "test_orders.py").write_text(UNITTEST, encoding="utf-8")
    done = environment("testing").run("python", "-W", "error", "-m", "unittest", "-v", folder=tmp_path)
    assert "Ran 2 tests" in done.stderr


def test_with_pytest_django(environment: MakeEnvironment, tmp_path: Path) -> None:
    (tmp_path / "settings.py").write_text(SETTINGS, encoding="utf-8")
    (tmp_path / "test_page.py").write_text(DJANGO, encoding="utf-8")
    (tmp_path / "test_function.py").write_text(FUNCTION, encoding="utf-8")
    done = environment("testing").run(*PYTEST, "--ds=settings", folder=tmp_path, environment={"PYTHONPATH": "."})
    assert re.search(r"\b2 passed", done.stdout), done.stdout


def test_with_real_servers(environment: MakeEnvironment, tmp_path: Path) -> None:
    for program in (binaries.POSTGRES, binaries.CREATEDB, binaries.RABBITMQ_SERVER, binaries.EPMD):
        available(program.path)
    (tmp_path / "test_shop.py").write_text(SERVERS, encoding="utf-8")
    done = environment("testing").run(*PYTEST, "-p", "no:django", folder=tmp_path, bound=300)
    assert re.search(r"\b2 passed", done.stdout), done.stdout


def test_a_failure_is_shown_as_documented(captured_outbox: CapturedOutbox) -> None:
    with pytest.raises(ZeroDivisionError), captured_outbox.transaction() as connection:
        Outbox().record(connection, Event("order.paid", {}))
        raise ZeroDivisionError
    order = Event("order.placed", {"id": 41, "items": [{"sku": "A1"}]}, key="order:42")
    captured_outbox.record(order, Event("order.sent", {}))
    with pytest.raises(AssertionError) as failed:
        captured_outbox.assert_recorded("order.placed", payload__id=42, key="order:42")
    [documented] = [block for block in blocks(PAGE, "") if block.startswith("AssertionError")]
    assert f"AssertionError: {failed.value}\n" == documented
