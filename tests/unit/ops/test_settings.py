"""What the environment says, and what it is told when it says something else."""

import pytest

from pillarbox.core.errors import ConfigurationError
from pillarbox.core.retry import Exponential
from pillarbox.ops.settings import Settings
from pillarbox.relay.tuning import Tuning


def test_nothing_set_is_every_default() -> None:
    assert Settings.from_environment({"HOME": "/root", "PILLARBOX_STORE": ""}) == Settings()


def test_every_setting_of_a_relay() -> None:
    relay = {
        "NAME": "relay-a",
        "ENABLED": "no",
        "BATCH_SIZE": "200",
        "IN_FLIGHT": "2",
        "POLL_INTERVAL": "500ms",
        "LEASE": "9s",
        "HEARTBEAT": "2s",
        "SEND_TIMEOUT": "5s",
        "DRAIN_TIMEOUT": "10s",
        "STALL_LIMIT": "20s",
        "RETRY__BASE": "1s",
        "RETRY__MAX": "60s",
        "RETRY__MULTIPLIER": "1.5",
        "RETRY__JITTER": "none",
        "RETRY__MAX_ATTEMPTS": "0",
    }
    given = {f"PILLARBOX_RELAY__{key}": value for key, value in relay.items()}
    settings = Settings.from_environment(given | {"PILLARBOX_STORE": "memory://", "PILLARBOX_TRANSPORT": "console://"})
    assert (settings.store, settings.transport) == ("memory://", "console://")
    assert (settings.name, settings.enabled) == ("relay-a", False)
    assert settings.tuning == Tuning(
        batch_size=200,
        in_flight=2,
        poll_interval="500ms",
        lease="9s",
        heartbeat="2s",
        send_timeout="5s",
        drain_timeout="10s",
        stall_limit="20s",
    )
    assert settings.retry == Exponential(base="1s", max="60s", multiplier=1.5, jitter="none", max_attempts=0)


def test_a_name_that_is_no_setting_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(ConfigurationError, match="did you mean PILLARBOX_RELAY__BATCH_SIZE"):
        Settings.from_environment({"PILLARBOX_RELAY_BATCHSIZE": "5"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("BATCH_SIZE", "many"),
        ("BATCH_SIZE", "0"),
        ("LEASE", "soon"),
        ("HEARTBEAT", "1h"),
        ("SEND_TIMEOUT", "15s"),
        ("ENABLED", "perhaps"),
        ("RETRY__BASE", "2h"),
        ("RETRY__MULTIPLIER", "x"),
        ("RETRY__JITTER", "some"),
        ("RETRY__MAX_ATTEMPTS", "-1"),
    ],
)
def test_a_value_that_cannot_work_names_its_variable(name: str, value: str) -> None:
    with pytest.raises(ConfigurationError, match=f"PILLARBOX_RELAY__{name}"):
        Settings.from_environment({f"PILLARBOX_RELAY__{name}": value})
