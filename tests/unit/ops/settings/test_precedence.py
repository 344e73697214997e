"""Precedence: flag, environment, file, preset, default; each value has its source."""

import pytest

from pillarbox import ExponentialBackoff, RelayConfig
from pillarbox.settings.shared import PRESET_NAMES, PresetName
from tests.unit.ops.settings.conftest import Write
from tests.unit.ops.settings.loading import load, origins, problems

FILE = "[relay]\npreset = 'production'\nmax_in_flight_batches = 4\nbatch_size = 1\nname = 'f'\nlease = '20s'"


def test_the_source_of_highest_precedence_applies_and_is_named(write: Write) -> None:
    settings = load(
        write(FILE),
        {"relay.name": "flag"},
        PILLARBOX_RELAY__NAME="e",
        PILLARBOX_RELAY__MAX_IN_FLIGHT_BATCHES="5",
    )
    relay, config, origin = settings.relay, settings.relay.config, origins(settings)
    assert (relay.name, origin["relay.name"]) == ("flag", "--set relay.name")
    assert (config.max_in_flight_batches, origin["relay.max_in_flight_batches"]) == (
        5,
        "PILLARBOX_RELAY__MAX_IN_FLIGHT_BATCHES",
    )
    assert (config.lease, origin["relay.lease"]) == ("20s", "pillarbox.toml")
    assert (config.poll_interval, origin["relay.poll_interval"]) == ("5s", "preset production")
    assert (config.heartbeat_interval, origin["relay.heartbeat_interval"]) == ("1s", "default")


@pytest.mark.parametrize("name", PRESET_NAMES)
def test_a_preset_sets_only_its_own_settings(name: PresetName) -> None:
    settings = load(PILLARBOX_RELAY__PRESET=name)
    assert (settings.relay.config, settings.relay.policy) == (RelayConfig.preset(name), ExponentialBackoff.preset(name))
    assert (settings.relay.config.max_in_flight_batches, settings.relay.config.lease) == (3, "15s")


def test_explicit_settings_override_a_preset(write: Write) -> None:
    settings = load(write(FILE + "\n[relay.retry]\nmax_attempts = 3"))
    assert (settings.relay.config.batch_size, settings.relay.retry.max_attempts) == (1, 3)
    assert settings.relay.retry.max_delay == "10m"


def test_a_preset_does_not_change_another_retry_policy(write: Write) -> None:
    settings = load(write("[relay]\npreset = 'staging'\n[relay.retry]\npolicy = 'none'"))
    assert "relay.retry.multiplier" not in origins(settings)


def test_an_unknown_flag_is_rejected_with_a_suggestion() -> None:
    assert problems(None, {"relay.batchsize": "5"}) == [
        "--set relay.batchsize is not a setting; did you mean relay.batch_size?"
    ]
    assert problems(None, {"relay.batch_size": "x"}) == ["--set relay.batch_size is 'x': write an integer, 1 or more"]


def test_a_password_on_the_command_line_is_rejected() -> None:
    [problem] = problems(None, {"store.url": "postgresql://app:canary-password@db/shop"})
    assert "PILLARBOX_STORE__URL_FILE" in problem
    assert "canary-password" not in problem
    assert load(None, {"store.url": "postgresql://app@db/shop"}).store.url == "postgresql://app@db/shop"


def test_database_url_names_the_store_unless_a_setting_does(write: Write) -> None:
    url = "postgresql+asyncpg://app:secret@db/shop?ssl=require"
    settings = load(DATABASE_URL=url)
    assert settings.store.url == "postgresql://app:secret@db/shop?sslmode=require"
    assert origins(settings)["store.url"] == "DATABASE_URL"
    assert load(DATABASE_URL="").store.url == "sqlite:///pillarbox.db"
    file = write('[store]\nurl = "sqlite:///file.db"\n')
    assert load(file, DATABASE_URL=url).store.url == "sqlite:///file.db"
    assert load(DATABASE_URL=url, PILLARBOX_STORE="memory://").store.url == "memory://"


def test_a_database_url_without_a_store_is_an_error_that_hides_the_password() -> None:
    [problem] = problems(DATABASE_URL="oracle://app:s3cret@db/shop")
    assert problem.startswith("DATABASE_URL: there is no store for oracle://")
    assert "s3cret" not in problem
