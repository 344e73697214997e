"""Relay and outbox from a settings file: the same objects as in Python, and errors that name the setting."""

import logging
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import aclosing, closing
from pathlib import Path
from typing import Any

import pytest

from pillarbox import (
    ConfigurationError,
    Event,
    HandlerContext,
    Outbox,
    ReceivedEvent,
    RecordError,
    Relay,
    TableNames,
)
from pillarbox.core.observations import Observer, RelayStarted, RelayStopped
from pillarbox.ops.doctor.examination import examine
from pillarbox.ops.settings import Settings
from pillarbox.stores.sqlite import SqliteStore
from pillarbox.telemetry.log_lines import EVENT_LOGGERS
from pillarbox.testing.waiting import eventually

SETTINGS = """
[store]
url = "sqlite:///{folder}/shop.db"
prefix = "shop_"

[record]
max_payload = "1 KiB"

[transports.handlers]
import = "shop_events:handlers"
"""
HANDLERS = """
from pillarbox import Handlers

handlers, handled = Handlers(), []


@handlers.on("order.placed", name="mailer")
async def mail(event, context):
    handled.append(event.payload["id"])
"""


@pytest.fixture
async def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The settings file of a shop with its tables and handlers."""
    (tmp_path / "shop_events.py").write_text(HANDLERS)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "shop_events", raising=False)
    store = SqliteStore(tmp_path / "shop.db", tables=TableNames(prefix="shop_"), max_payload=1024)
    await store.schema.apply()
    await store.aclose()
    written = tmp_path / "shop.toml"
    written.write_text(SETTINGS.format(folder=tmp_path))
    return written


@pytest.fixture(autouse=True)
def restored_levels() -> Iterator[None]:
    """No level of a logger outlives its test."""
    levels = {name: logging.getLogger(name).level for name in EVENT_LOGGERS}
    yield
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


def record(file: Path, payload: Any) -> None:
    outbox = Outbox.from_settings(file, environment={})
    with closing(sqlite3.connect(file.parent / "shop.db")) as shop, shop:
        outbox.record(shop, Event("order.placed", payload))


async def test_the_relay_delivers_events_of_the_outbox(file: Path) -> None:
    record(file, {"id": 42})
    relay = Relay.from_settings(file, environment={})
    assert await relay.run_until_empty() == 0
    await relay.aclose()
    assert sys.modules["shop_events"].handled == [42]


async def test_the_relay_runs_in_the_background_and_closes_its_resources(file: Path) -> None:
    record(file, {"id": 43})
    seen: list[object] = []

    async def handled() -> list[int]:
        return list(sys.modules["shop_events"].handled)

    async with Relay.from_settings(file, environment={}, observers=[seen.append]):
        assert await eventually(handled) == [43]
    assert [type(seen[0]), type(seen[-1])] == [RelayStarted, RelayStopped]


async def test_the_next_relay_of_the_process_calls_the_same_handlers(file: Path) -> None:
    thanked: list[int] = []

    def thank(event: ReceivedEvent, context: HandlerContext) -> None:
        thanked.append(event.payload["id"])

    for number in (1, 2, 3):
        record(file, {"id": number})
        relay = Relay.from_settings(file, environment={})
        if number == 1:
            sys.modules["shop_events"].handlers.on("order.placed", name="thank")(thank)
        async with aclosing(SqliteStore(file.parent / "shop.db", tables=TableNames(prefix="shop_"))) as store:
            report = await examine(Settings.load(file, {}), store)
        assert [one.message for one in report.findings if one.check == "settings.relay"] == [
            "a relay can start; transports: handlers"
        ]
        assert await relay.run_until_empty() == 0
        await relay.aclose()
    assert (sys.modules["shop_events"].handled, thanked) == ([1, 2, 3], [1, 2, 3])


def test_the_outbox_has_the_limits_of_the_file(file: Path) -> None:
    with pytest.raises(RecordError, match="max_payload allows 1024"):
        record(file, {"id": "x" * 2000})


def test_variables_override_the_file(file: Path) -> None:
    variables = {"PILLARBOX_CONFIG": str(file), "PILLARBOX_RELAY__LEASE": "2s"}
    with pytest.raises(
        ConfigurationError, match=r"PILLARBOX_RELAY__LEASE is 2s: it must be at least 3 × relay.heartbeat_interval"
    ):
        Relay.from_settings(environment=variables)


def test_an_unknown_setting_is_named_with_its_file(file: Path) -> None:
    file.write_text("[record]\nmax_size = 5")
    with pytest.raises(ConfigurationError, match=rf"record.max_size in {file} is not a setting"):
        Outbox.from_settings(file, environment={})


def test_a_relay_without_a_transport_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "empty.toml").write_text("")
    with pytest.raises(
        ConfigurationError, match=r"PILLARBOX_TRANSPORT is not set, and .*empty\.toml has no transports"
    ):
        Relay.from_settings(tmp_path / "empty.toml", environment={})


def test_a_relay_without_any_settings_is_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigurationError, match="PILLARBOX_TRANSPORT is not set, and there is no settings file"):
        Relay.from_settings(environment={})


@pytest.mark.parametrize(("observers", "logged"), [(None, ["ERROR", "WARNING"]), ([], [])])
async def test_the_relay_logs_what_fails_unless_it_has_other_observers(
    file: Path, caplog: pytest.LogCaptureFixture, observers: list[Observer] | None, logged: list[str]
) -> None:
    for payload in ({"id": 1}, {}):  # the handler fails without an id
        record(file, payload)
    with caplog.at_level(logging.INFO):
        relay = Relay.from_settings(file, environment={}, observers=observers)
        await relay.run_until_empty()
        await relay.aclose()
    lines = [line for line in caplog.records if line.name == "pillarbox.relay.events"]
    assert [line.levelname for line in lines] == logged
    assert all("KeyError: 'id'" in line.getMessage() for line in lines if line.levelname == "ERROR")


def test_a_level_that_the_application_has_set_stays(file: Path) -> None:
    one, other = (logging.getLogger(name) for name in EVENT_LOGGERS)
    one.setLevel(logging.INFO)
    other.setLevel(logging.NOTSET)
    Relay.from_settings(file, environment={})
    assert (one.level, other.level) == (logging.INFO, logging.WARNING)


def test_settings_replace_the_limits_of_the_imported_handlers(file: Path) -> None:
    file.write_text(file.read_text() + 'timeout = "forever"\nworkers = 2\n')
    Relay.from_settings(file, environment={})
    assert sys.modules["shop_events"].handlers.pace.overdue is None
