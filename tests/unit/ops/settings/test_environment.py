"""Settings from environment variables, and the errors for invalid ones."""

from pathlib import Path

import pytest

from pillarbox.ops.settings import Settings, sources
from pillarbox.relay.config import RelayConfig
from pillarbox.retry_policies import ExponentialBackoff
from pillarbox.testing.servers import binaries
from tests.unit.ops.settings.conftest import Write
from tests.unit.ops.settings.loading import load, origins, problems

CANARY = "canary-password"


def test_without_variables_all_defaults_apply() -> None:
    assert load(HOME="/root", PILLARBOX_STORE="") == Settings()


def test_the_library_has_the_same_defaults() -> None:
    settings = load()
    assert settings.relay.config == RelayConfig()
    assert settings.relay.policy == ExponentialBackoff()


def test_every_relay_setting_has_a_variable() -> None:
    relay = {
        "NAME": "relay-a",
        "ENABLED": "no",
        "BATCH_SIZE": "200",
        "MAX_IN_FLIGHT_BATCHES": "2",
        "POLL_INTERVAL": "500ms",
        "INITIAL_DELAY": "2s",
        "LEASE": "12s",
        "HEARTBEAT_INTERVAL": "2s",
        "SEND_TIMEOUT": "5s",
        "DRAIN_TIMEOUT": "10s",
        "STALL_LIMIT": "20s",
        "ADAPTIVE": "off",
        "OUTAGES": "count",
        "RETRY__BASE": "1s",
        "RETRY__MAX_DELAY": "60s",
        "RETRY__MULTIPLIER": "1.5",
        "RETRY__JITTER": "none",
        "RETRY__MAX_ATTEMPTS": "unlimited",
        "ON_EXHAUSTED": "block",
    }
    settings = load(**{f"PILLARBOX_RELAY__{key}": value for key, value in relay.items()})
    assert (settings.relay.name, settings.relay.config.enabled) == ("relay-a", False)
    assert settings.relay.config == RelayConfig(
        enabled=False,
        batch_size=200,
        max_in_flight_batches=2,
        poll_interval="500ms",
        initial_delay="2s",
        lease="12s",
        heartbeat_interval="2s",
        send_timeout="5s",
        drain_timeout="10s",
        stall_limit="20s",
        adaptive=False,
        outages="count",
        on_exhausted="block",
    )
    assert settings.relay.policy == ExponentialBackoff(
        base="1s", max_delay="60s", multiplier=1.5, jitter="none", max_attempts="unlimited"
    )


def test_the_variable_of_the_pytest_plugin_is_no_setting() -> None:
    assert load(PILLARBOX_TEST_SERVERS="/opt/servers/bin") == load()
    assert "PILLARBOX_TEST_SERVER is not a setting" in problems(PILLARBOX_TEST_SERVER="x")[0]
    assert sources.TEST_SERVERS == binaries.SERVERS


def test_the_short_forms_set_store_and_transport() -> None:
    settings = load(PILLARBOX_STORE="memory://", PILLARBOX_TRANSPORT="stdout://")
    assert settings.store.url == "memory://"
    assert {name: given.url for name, given in settings.transports.items()} == {"default": "stdout://"}
    handlers = load(PILLARBOX_TRANSPORT="handlers:shop.events:handlers").transports["default"]
    assert (handlers.kind, handlers.import_) == ("handlers", "shop.events:handlers")


def test_the_short_form_sets_the_only_transport_of_the_file(write: Write) -> None:
    file = write('[transports.rabbit]\nurl = "amqp://here/"\nwindow = 5')
    [(name, transport)] = load(file, PILLARBOX_TRANSPORT="amqp://there/").transports.items()
    assert (name, transport.url, transport.rabbitmq.window) == ("rabbit", "amqp://there/", 5)


def test_the_short_form_is_rejected_with_several_transports(write: Write) -> None:
    file = write('[transports.a]\nurl = "stdout://"\n[transports.b]\nurl = "stdout://"')
    [problem] = problems(file, PILLARBOX_TRANSPORT="stdout://")
    assert problem == (
        "PILLARBOX_TRANSPORT: the file has several transports; set one of them, as in PILLARBOX_TRANSPORTS__A__URL"
    )


def test_a_named_table_is_found_regardless_of_case_and_hyphens(write: Write) -> None:
    file = write('[transports.My-Rabbit]\nurl = "amqp://here/"')
    settings = load(file, PILLARBOX_TRANSPORTS__MY_RABBIT__WINDOW="7")
    assert [(name, given.rabbitmq.window) for name, given in settings.transports.items()] == [("My-Rabbit", 7)]


def test_variables_alone_can_define_a_named_table() -> None:
    settings = load(
        PILLARBOX_TRANSPORTS__RABBIT__URL="amqp://mq/",
        PILLARBOX_DESTINATIONS__ORDERS__EXCHANGE="shop",
        PILLARBOX_DESTINATIONS__ORDERS__RATE_LIMIT="5/s",
    )
    assert settings.transports["rabbit"].kind == "rabbitmq"
    assert (settings.destinations["orders"].rabbitmq.exchange, settings.destinations["orders"].rate_limit) == (
        "shop",
        "5/s",
    )


@pytest.mark.parametrize("variable", ["PILLARBOX_STORE__URL_FILE", "PILLARBOX_STORE_FILE"])
def test_a_secret_can_be_read_from_a_file(variable: str, tmp_path: Path) -> None:
    secret = tmp_path / "url"
    secret.write_text(f"postgresql://app:{CANARY}@db/shop\n")
    settings = load(**{variable: str(secret)})
    assert settings.store.url == f"postgresql://app:{CANARY}@db/shop"
    assert origins(settings)["store.url"] == variable


def test_the_transport_can_be_read_from_a_file_too(tmp_path: Path) -> None:
    (tmp_path / "url").write_text("amqp://mq/")
    assert load(PILLARBOX_TRANSPORT_FILE=str(tmp_path / "url")).transports["default"].url == "amqp://mq/"


def test_a_missing_secret_file_is_an_error_that_names_its_variable(tmp_path: Path) -> None:
    [problem] = problems(PILLARBOX_STORE__URL_FILE=str(tmp_path / "nowhere"))
    assert problem == f"PILLARBOX_STORE__URL_FILE: {tmp_path / 'nowhere'} cannot be read: No such file or directory"


def test_only_secrets_are_read_from_files() -> None:
    [problem] = problems(PILLARBOX_RELAY__NAME_FILE="/etc/hostname")
    assert problem.startswith("PILLARBOX_RELAY__NAME_FILE is not a setting")


def test_two_variables_for_one_setting_are_rejected() -> None:
    [problem] = problems(PILLARBOX_STORE="memory://", PILLARBOX_STORE__URL="memory://")
    assert problem == "PILLARBOX_STORE and PILLARBOX_STORE__URL both set store.url: leave one of them out"


def test_an_unknown_variable_is_rejected_with_a_suggestion() -> None:
    assert problems(PILLARBOX_RELAY_BATCHSIZE="5") == [
        "PILLARBOX_RELAY_BATCHSIZE is not a setting; did you mean PILLARBOX_RELAY__BATCH_SIZE?"
    ]
    [problem] = problems(PILLARBOX_TRANSPORTS__RABBIT__WINDOWS="5")
    assert problem.endswith("did you mean PILLARBOX_TRANSPORTS__RABBIT__WINDOW?")


def test_lists_of_tables_can_only_be_set_in_the_file() -> None:
    [problem] = problems(PILLARBOX_ROUTES__0__TO="orders")
    assert problem.startswith("PILLARBOX_ROUTES__0__TO is not a setting")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("BATCH_SIZE", "many"),
        ("BATCH_SIZE", "0"),
        ("LEASE", "soon"),
        ("LEASE", "15"),
        ("HEARTBEAT_INTERVAL", "1h"),
        ("HEARTBEAT_INTERVAL", "0s"),
        ("SEND_TIMEOUT", "15s"),
        ("STALL_LIMIT", "1s"),
        ("ENABLED", "perhaps"),
        ("PRESET", "productoin"),
        ("LISTEN", "127.0.0.1"),
        ("RETRY__BASE", "2h"),
        ("RETRY__MULTIPLIER", "x"),
        ("RETRY__MULTIPLIER", "0.5"),
        ("RETRY__JITTER", "some"),
        ("RETRY__MAX_ATTEMPTS", "0"),
    ],
)
def test_an_invalid_value_is_an_error_that_names_its_variable(name: str, value: str) -> None:
    [problem] = problems(**{f"PILLARBOX_RELAY__{name}": value})
    assert f"PILLARBOX_RELAY__{name}" in problem


def test_all_errors_are_reported_at_once() -> None:
    assert len(problems(PILLARBOX_RELAY__LEASE="soon", PILLARBOX_RELAY__LEESE="1s", PILLARBOX_STORE="shop.db")) == 3
