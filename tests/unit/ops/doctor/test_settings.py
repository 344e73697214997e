"""Checks of the settings: whether a relay can start with them, and notes for the operator."""

from typing import Any

import pytest

from pillarbox.core.errors import ConfigurationError
from pillarbox.ops.doctor import settings as checks
from pillarbox.ops.doctor import unreadable
from pillarbox.ops.settings import Settings
from pillarbox.stores.memory import MemoryStore


async def found(check: str, **variables: str) -> tuple[str, str]:
    settings = Settings.load(None, variables)
    [asked] = [one for one in checks.checks(settings, MemoryStore()) if one.name == check]
    answer = await asked.ask()
    return answer.result, answer.message


async def test_the_store_is_named_without_its_password() -> None:
    result, said = await found("settings.read", PILLARBOX_STORE="postgresql://app:secret@db/shop")
    assert (result, "postgresql://app:***@db/shop" in said, "secret" in said) == ("pass", True, False)


@pytest.mark.parametrize(
    ("variables", "result", "said"),
    [
        ({"PILLARBOX_TRANSPORT": "stdout://"}, "pass", "a relay can start"),
        ({}, "warn", "no transport is configured"),
        ({"PILLARBOX_TRANSPORT": "stdout://", "PILLARBOX_RELAY__ENABLED": "false"}, "warn", "RELAY__ENABLED is false"),
        ({"PILLARBOX_TRANSPORT": "handlers:no_such_module:handlers"}, "fail", "no_such_module"),
    ],
)
async def test_valid_settings_can_start_a_relay(variables: dict[str, Any], result: str, said: str) -> None:
    seen = await found("settings.relay", **variables)
    assert (seen[0], said in seen[1]) == (result, True), seen


async def test_notes_of_the_settings_are_warnings() -> None:
    assert (await found("settings.notes"))[0] == "pass"
    result, said = await found("settings.notes", PILLARBOX_RELAY__DRAIN_TIMEOUT="1s")
    assert (result, "DRAIN_TIMEOUT" in said) == ("warn", True)


async def test_an_armed_failpoint_is_reported() -> None:
    assert (await found("settings.failpoint"))[0] == "pass"
    assert (await found("settings.failpoint", PILLARBOX_FAILPOINT="before_send:1"))[0] == "fail"


def test_unreadable_settings_are_the_only_result() -> None:
    report = unreadable(ConfigurationError("relay.lease is wrong\nand so is relay.heartbeat_interval"))
    [finding] = report.findings
    assert (finding.check, finding.result, report.worst) == ("settings.read", "fail", "fail")
    assert finding.message == "relay.lease is wrong; and so is relay.heartbeat_interval"
    # The other command that tells of settings fails as this one does.
    assert ("config check" in finding.fix, "config show" in finding.fix) == (True, False)
