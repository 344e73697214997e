"""The order and the prerequisites of checks; a check that raises does not stop the others."""

import asyncio
from contextlib import aclosing
from pathlib import Path
from shutil import copyfile

import pytest

from pillarbox.admin.diagnosis import Check, CheckResult, failed, passed, warned
from pillarbox.core.errors import StoreUnavailableError
from pillarbox.ops.doctor import Report, examination, examine
from pillarbox.ops.settings import Settings
from pillarbox.stores.memory import MemoryStore
from pillarbox.stores.postgres import PostgresStore
from pillarbox.stores.sqlite import SqliteStore
from tests.servers.ports import free_port


def check(name: str, answer: CheckResult | Exception, *, prerequisite: bool = False) -> Check:
    async def ask() -> CheckResult:
        if isinstance(answer, Exception):
            raise answer
        return answer

    return Check(name=name, ask=ask, prerequisite=prerequisite)


async def test_checks_after_a_failed_prerequisite_are_skipped() -> None:
    made, _ = await examination._run(
        [
            check("a", passed("fine"), prerequisite=True),
            check("b", failed("broken", "mend it"), prerequisite=True),
            check("c", passed("fine")),
        ]
    )
    assert [finding.result for finding in made] == ["pass", "fail", "skip"]
    assert made[2].message == "skipped, because b failed"


async def test_a_check_that_raises_is_a_warning_and_the_others_run() -> None:
    made, _ = await examination._run(
        [check("a", StoreUnavailableError("permission denied")), check("b", warned("well", "do"))]
    )
    assert [finding.result for finding in made] == ["warn", "warn"]
    assert made[0].message == "the check could not run: permission denied"


async def test_a_prerequisite_that_raises_is_a_failure() -> None:
    made, _ = await examination._run(
        [check("a", StoreUnavailableError("gone"), prerequisite=True), check("b", passed("fine"))]
    )
    assert [finding.result for finding in made] == ["fail", "skip"]


async def test_a_check_that_hangs_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examination, "TIMEOUT", 0.01)

    async def never() -> CheckResult:
        await asyncio.Event().wait()
        return passed("at last")

    [finding], _ = await examination._run([Check(name="a", ask=never)])
    assert (finding.result, "no answer within" in finding.message) == ("warn", True)


async def test_groups_are_in_order(tmp_path: Path, sqlite_template: Path) -> None:
    copyfile(sqlite_template, tmp_path / "outbox.db")
    async with aclosing(SqliteStore(tmp_path / "outbox.db")) as store:
        report = await examine(Settings.load(None, {"PILLARBOX_TRANSPORT": "stdout://"}), store)
    groups = list(dict.fromkeys(finding.check.split(".")[0] for finding in report.findings))
    assert groups == ["settings", "store", "guarantees", "symptoms"]
    assert report.worst == "warn"  # no relay is alive
    assert [finding.check for finding in report.of("warn")] == ["symptoms.relays"]


async def test_without_a_store_settings_and_guarantees_are_checked() -> None:
    url = f"postgresql://app:secret@127.0.0.1:{free_port()}/shop"
    async with aclosing(PostgresStore(url)) as store:
        report = await examine(Settings.load(None, {"PILLARBOX_STORE": url}), store)
    results = {
        group: {f.result for f in report.findings if f.check.startswith(group)} for group in ("store", "symptoms")
    }
    assert results == {"store": {"fail", "skip"}, "symptoms": {"skip"}}
    assert [finding.check for finding in report.of("fail")] == ["store.reachable"]
    assert "secret" not in str(report)


async def test_checks_of_two_brokers_are_distinguishable() -> None:
    port = free_port()
    variables = {
        f"PILLARBOX_TRANSPORTS__{name}__URL": f"amqp://app:secret@127.0.0.1:{port}/" for name in ("EAST", "WEST")
    }
    report = await examine(Settings.load(None, variables), MemoryStore())
    assert {f.subject for f in report.findings if f.check == "transport.reachable"} == {"east", "west"}
    assert {f.result for f in report.findings if f.check.startswith("transport.")} == {"fail", "skip"}
    assert "secret" not in str(report)


def test_the_worst_result_determines_the_outcome() -> None:
    assert Report(findings=()).worst == "pass"
