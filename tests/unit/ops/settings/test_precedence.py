"""Precedence: flag, environment, file, preset, default; each value has its source."""

import pytest

from pillarbox.relay.config import PRESETS
from tests.unit.ops.settings.conftest import Write
from tests.unit.ops.settings.loading import load, origins, problems

FILE = "[relay]\npreset = 'production'\nin_flight = 4\nbatch_size = 1\nname = 'f'\nlease = '20s'"


def test_the_source_of_highest_precedence_applies_and_is_named(write: Write) -> None:
    settings = load(
        write(FILE),
        {"relay.name": "flag"},
        PILLARBOX_RELAY__NAME="e",
        PILLARBOX_RELAY__IN_FLIGHT="5",
    )
    relay, config, origin = settings.relay, settings.relay.config, origins(settings)
    assert (relay.name, origin["relay.name"]) == ("flag", "--set relay.name")
    assert (config.in_flight, origin["relay.in_flight"]) == (5, "PILLARBOX_RELAY__IN_FLIGHT")
    assert (config.lease, origin["relay.lease"]) == ("20s", "pillarbox.toml")
    assert (config.poll_interval, origin["relay.poll_interval"]) == ("5s", "preset production")
    assert (config.heartbeat, origin["relay.heartbeat"]) == ("1s", "default")


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_sets_only_its_own_settings(name: str) -> None:
    settings, preset = load(PILLARBOX_RELAY__PRESET=name), PRESETS[name]
    assert (settings.relay.config.poll_interval, settings.relay.config.batch_size) == (
        preset.poll_interval,
        preset.batch_size,
    )
    assert settings.relay.policy == preset.retry
    assert (settings.relay.config.in_flight, settings.relay.config.lease) == (3, "15s")


def test_explicit_settings_override_a_preset(write: Write) -> None:
    settings = load(write(FILE + "\n[relay.retry]\nmax_attempts = 3"))
    assert (settings.relay.config.batch_size, settings.relay.retry.max_attempts) == (1, 3)
    assert settings.relay.retry.max == "600s"


def test_a_preset_does_not_change_another_retry_policy(write: Write) -> None:
    settings = load(write("[relay]\npreset = 'staging'\n[relay.retry]\npolicy = 'none'"))
    assert "relay.retry.multiplier" not in origins(settings)


def test_an_unknown_flag_is_rejected_with_a_suggestion() -> None:
    assert problems(None, {"relay.batchsize": "5"}) == [
        "--set relay.batchsize is not a setting; did you mean relay.batch_size?"
    ]
    assert problems(None, {"relay.batch_size": "x"}) == [
        "--set relay.batch_size is 'x': write a whole number, 1 or more"
    ]


def test_a_password_on_the_command_line_is_rejected() -> None:
    [problem] = problems(None, {"store.url": "postgresql://app:canary-password@db/shop"})
    assert "PILLARBOX_STORE__URL_FILE" in problem
    assert "canary-password" not in problem
    assert load(None, {"store.url": "postgresql://app@db/shop"}).store.url == "postgresql://app@db/shop"
