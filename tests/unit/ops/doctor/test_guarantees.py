"""Settings that must be consistent for a guarantee to hold."""

import pytest

from pillarbox.ops.doctor import guarantees
from pillarbox.ops.settings import Settings


async def found(check: str, **flags: str) -> tuple[str, str]:
    settings = Settings.load(None, {}, {name.replace("__", "."): value for name, value in flags.items()})
    [asked] = [one for one in guarantees.checks(settings) if one.name == check]
    answer = await asked.ask()
    return answer.result, answer.message


@pytest.mark.parametrize(("lease", "result"), [("15s", "pass"), ("14s", "warn")])
async def test_the_send_timeout_must_fit_the_lease(lease: str, result: str) -> None:
    assert (await found("guarantees.lease", relay__lease=lease))[0] == result


@pytest.mark.parametrize(
    ("kept", "attempts", "result"),
    [
        ("120 days", "11", "pass"),
        ("1h", "11", "fail"),
        ("forever", "11", "pass"),
        ("1h", "unlimited", "warn"),
        ("forever", "unlimited", "pass"),
        ("1h", "3", "pass"),
    ],
)
async def test_inbox_records_must_outlive_the_retries_of_an_event(kept: str, attempts: str, result: str) -> None:
    flags = {"relay__retention__inbox": kept, "relay__retention__dead": "1h", "relay__retry__max_attempts": attempts}
    assert (await found("guarantees.inbox", **flags))[0] == result


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ({}, "an event is retried for at most 2.4 h, outages not counted"),
        ({"relay__outages": "count"}, "an event is retried for at most 2.4 h"),
        ({"relay__retry__max_attempts": "5"}, "an event is retried for at most 2.5 min, outages not counted"),
        ({"relay__retry__max_attempts": "2"}, "an event is retried for at most 10 s, outages not counted"),
    ],
)
async def test_the_retry_horizon_has_a_readable_unit(flags: dict[str, str], said: str) -> None:
    result, reported = await found("guarantees.inbox", **flags)
    assert (result, reported) == ("pass", f"inbox records are kept for 120 days; {said}")


async def test_inbox_records_must_outlive_dead_letters() -> None:
    assert (await found("guarantees.inbox", relay__retention__inbox="1h"))[0] == "pass"


@pytest.mark.parametrize(("kept", "result"), [("30 days", "pass"), ("1h", "warn"), ("forever", "pass")])
async def test_the_ledger_must_outlive_the_retries_of_an_event(kept: str, result: str) -> None:
    assert (await found("guarantees.ledger", store__ledger="true", relay__retention__ledger=kept))[0] == result


def test_without_a_ledger_its_check_is_omitted() -> None:
    assert "guarantees.ledger" not in [check.name for check in guarantees.checks(Settings.load(None, {}))]


@pytest.mark.parametrize(("outages", "result"), [("wait", "pass"), ("count", "warn")])
async def test_counted_outages_are_reported(outages: str, result: str) -> None:
    assert (await found("guarantees.outages", relay__outages=outages))[0] == result
