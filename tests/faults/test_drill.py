"""The drill itself: with every guard it passes, and without any one of them it fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from pillarbox.ops.drill.schedule import FaultKind
from tests.faults.drilling import drilled
from tests.faults.mutants import Guard
from tests.servers.rabbitmq import RabbitMQServer

LONG = 180.0
"""Seconds after which a drill ends if fewer faults were possible; a busy machine needs them."""


@pytest.fixture
def sqlite(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/shop.db"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "drill").mkdir()
    return tmp_path / "drill"


def test_a_drill_with_every_guard_passes(
    folder: Path, monkeypatch: pytest.MonkeyPatch, postgres_url: str, rabbitmq_server: RabbitMQServer
) -> None:
    kinds: tuple[FaultKind, ...] = ("kill", "drain", "kill-consumer", "unroutable", "blocked-settlement")
    result = drilled(
        folder, monkeypatch, *kinds, store=postgres_url, transport=rabbitmq_server.url(), seconds=LONG, faults=9
    )
    assert (result.conclusion, result.violations) == ("passed", [])
    assert [kind for kind in kinds if not result.effective[kind]] == []


def test_without_waiting_for_the_confirm_the_drill_fails(
    folder: Path, monkeypatch: pytest.MonkeyPatch, sqlite: str
) -> None:
    result = drilled(folder, monkeypatch, "kill", store=sqlite, seconds=LONG, faults=2, without="confirm")
    assert result.conclusion == "failed"
    assert result.findings.lost


def test_without_holding_back_the_next_of_a_key_the_drill_fails(
    folder: Path, monkeypatch: pytest.MonkeyPatch, sqlite: str
) -> None:
    result = drilled(folder, monkeypatch, "drain", store=sqlite, seconds=LONG, faults=1, without="held-back")
    assert result.conclusion == "failed"
    assert result.findings.out_of_order


def test_without_mandatory_the_drill_fails(
    folder: Path, monkeypatch: pytest.MonkeyPatch, sqlite: str, rabbitmq_server: RabbitMQServer
) -> None:
    result = drilled(
        folder,
        monkeypatch,
        "unroutable",
        store=sqlite,
        transport=rabbitmq_server.url(),
        seconds=LONG,
        faults=1,
        without="mandatory",
    )
    assert result.conclusion == "failed"
    assert result.findings.lost


@pytest.mark.parametrize(
    ("database", "guard", "kind"),
    [
        ("postgres_url", "epoch", "stale-settlement"),
        ("sqlite", "epoch", "stale-settlement"),
        ("postgres_url", "lane-lock", "blocked-settlement"),
    ],
)
def test_without_the_fence_the_drill_fails(
    request: pytest.FixtureRequest,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    database: str,
    guard: Guard,
    kind: FaultKind,
) -> None:
    store = request.getfixturevalue(database)
    result = drilled(folder, monkeypatch, kind, store=store, seconds=LONG, faults=2, without=guard)
    assert result.conclusion == "failed"
    assert result.findings.stale


def test_without_the_inbox_the_drill_fails(folder: Path, monkeypatch: pytest.MonkeyPatch, sqlite: str) -> None:
    result = drilled(folder, monkeypatch, "kill", store=sqlite, seconds=LONG, faults=6, without="inbox")
    assert result.conclusion == "failed"
    assert result.findings.wrong_effects


def test_what_a_relay_sends_at_last_and_no_writer_recorded_is_found(
    folder: Path, monkeypatch: pytest.MonkeyPatch, sqlite: str, rabbitmq_server: RabbitMQServer
) -> None:
    result = drilled(
        folder,
        monkeypatch,
        "drain",
        store=sqlite,
        transport=rabbitmq_server.url(),
        seconds=LONG,
        faults=1,
        relay="tests.faults.inventing_relay",
    )
    assert result.conclusion == "failed"
    relays = 3 + len(result.faults)
    assert len(result.findings.phantom) == len(set(result.findings.wrong_effects)) == relays


def test_a_drill_without_an_effective_fault_is_void(folder: Path, monkeypatch: pytest.MonkeyPatch, sqlite: str) -> None:
    result = drilled(folder, monkeypatch, "kill", store=sqlite, seconds=0.01)
    assert (result.conclusion, result.violations) == ("void", [])
    assert result.void_reasons in (["no event was committed"], ["no fault took effect"])


def test_an_outage_that_neither_drill_nor_relay_notices_is_void(
    folder: Path, monkeypatch: pytest.MonkeyPatch, sqlite: str, rabbitmq_server: RabbitMQServer
) -> None:
    result = drilled(
        folder,
        monkeypatch,
        "cut-broker",
        store=sqlite,
        transport=rabbitmq_server.url(),
        seconds=LONG,
        faults=1,
        cut_broker="true",
        restore_broker="true",
    )
    assert (result.conclusion, result.violations) == ("void", [])
    assert result.faults
