"""The settings are read once and validated before anything starts."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from apps.ingestion.settings import Settings, SettingsError
from pillarbox.core.clock import system_rng
from tests.apps.ingestion.running import ingestion


def test_without_variables_the_relay_is_embedded_and_the_port_is_8081() -> None:
    settings = Settings.read({"PATH": "/bin"})
    assert settings == Settings()
    assert (settings.store, settings.transport, settings.relay) == ("sqlite:///ingestion.db", "", "embedded")
    assert (settings.host, settings.port) == ("127.0.0.1", 8081)


def test_every_variable_is_read(tmp_path: Path) -> None:
    secret = tmp_path / "store"
    secret.write_text("postgresql://app:pw@db/ingestion_db\n")
    settings = Settings.read(
        {
            "INGESTION_STORE_FILE": str(secret),
            "INGESTION_TRANSPORT": "amqp://app:pw@mq/",
            "INGESTION_RELAY": "separate",
            "INGESTION_LISTEN": "0.0.0.0:80",
            "INGESTION_IDEMPOTENCY_HOURS": "48",
            "INGESTION_MAX_BACKLOG": "500",
            "INGESTION_LOG_LEVEL": "DEBUG",
        }
    )
    assert settings == Settings(
        store="postgresql://app:pw@db/ingestion_db",
        transport="amqp://app:pw@mq/",
        relay="separate",
        host="0.0.0.0",  # noqa: S104 - compared, not bound
        port=80,
        keep_keys=timedelta(hours=48),
        max_backlog=500,
        log_level="DEBUG",
    )
    assert "pw" not in repr(settings)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("INGESTION_STORE", "mysql://app:pw@db/x"),
        ("INGESTION_STORE", "postgresql://app:pw@db:port/x"),
        ("INGESTION_STORE", "sqlite://"),
        ("INGESTION_STORE", "sqlite:///:memory:"),
        ("INGESTION_STORE_FILE", "/no/such/file"),
        ("INGESTION_TRANSPORT", "kafka://app:pw@mq/"),
        ("INGESTION_RELAY", "outside"),
        ("INGESTION_RELAY", "separate"),
        ("INGESTION_LISTEN", "8081"),
        ("INGESTION_LISTEN", "127.0.0.1:70000"),
        ("INGESTION_IDEMPOTENCY_HOURS", "0"),
        ("INGESTION_MAX_BACKLOG", "many"),
        ("INGESTION_LOG_LEVEL", "LOUD"),
        ("INGESTION_STORAGE", "typo"),
    ],
)
def test_an_invalid_variable_is_named_without_a_password(variable: str, value: str) -> None:
    with pytest.raises(SettingsError) as refused:
        Settings.read({variable: value})
    assert variable in str(refused.value)
    assert "pw" not in str(refused.value)


def test_all_invalid_variables_are_reported_at_once(tmp_path: Path) -> None:
    done = ingestion("serve", cwd=tmp_path, INGESTION_RELAY="no", INGESTION_LISTEN="here", INGESTION_COLOUR="red")
    assert done.returncode == 2
    assert all(f"INGESTION_{name}" in done.stderr for name in ("RELAY", "LISTEN", "COLOUR"))


def test_a_consumer_without_a_broker_is_an_error(tmp_path: Path) -> None:
    done = ingestion("validate", cwd=tmp_path)
    assert done.returncode == 2
    assert "INGESTION_TRANSPORT is not set" in done.stderr


def test_the_publisher_is_configured_under_the_names_of_the_guide() -> None:
    publisher = Settings.read(
        {
            "OUTBOX_PUBLISHER_POLLING_INTERVAL": "500ms",
            "OUTBOX_PUBLISHER_BATCH_SIZE": "200",
            "OUTBOX_PUBLISHER_MAX_RETRIES": "3",
            "OUTBOX_PUBLISHER_INITIAL_RETRY_DELAY": "5000",
            "OUTBOX_PUBLISHER_MAX_RETRY_DELAY": "1m",
            "OUTBOX_PUBLISHER_OUTAGES": "count",
            "OUTBOX_PUBLISHER_FIXEDDELAY": "true",
        }
    ).publisher
    config, retry = publisher.config, publisher.retry
    assert (config.poll_interval, config.batch_size, config.outages) == (0.5, 200, "count")
    assert (config.adaptive, config.wakeup, config.enabled) == (False, "none", True)
    assert [retry.delay_after(attempt, system_rng()) for attempt in range(1, 5)] == [5, 10, 20, None]


def test_zero_retries_means_one_attempt() -> None:
    retry = Settings.read({"OUTBOX_PUBLISHER_MAX_RETRIES": "0"}).publisher.retry
    assert retry.delay_after(1, system_rng()) is None


def test_a_disabled_publisher_turns_the_relay_off() -> None:
    assert Settings.read({"OUTBOX_PUBLISHER_ENABLED": "false"}).relay == "off"


def test_the_broker_can_be_configured_with_the_variables_of_spring() -> None:
    named = {"SPRING_RABBITMQ_HOST": "mq", "SPRING_RABBITMQ_PUBLISHER_CONFIRM_TYPE": "correlated"}
    assert Settings.read(named).transport == "amqp://guest:guest@mq:5672/%2F"
    named |= {"SPRING_RABBITMQ_PORT": "5673", "SPRING_RABBITMQ_USERNAME": "a", "SPRING_RABBITMQ_PASSWORD": "p/w"}
    settings = Settings.read(named | {"SPRING_RABBITMQ_VIRTUAL_HOST": "docs"})
    assert settings.transport == "amqp://a:p%2Fw@mq:5673/docs"
    assert "p%2Fw" not in repr(settings)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("OUTBOX_PUBLISHER_POLLING_INTERVAL", "0"),
        ("OUTBOX_PUBLISHER_POLLING_INTERVAL", "often"),
        ("OUTBOX_PUBLISHER_POLLING_INTERVAL", "2 weeks"),
        ("OUTBOX_PUBLISHER_BATCH_SIZE", "0"),
        ("OUTBOX_PUBLISHER_BATCH_SIZE", "١٢"),
        ("OUTBOX_PUBLISHER_MAX_RETRIES", "-1"),
        ("OUTBOX_PUBLISHER_INITIAL_RETRY_DELAY", "2h"),
        ("OUTBOX_PUBLISHER_MAX_RETRY_DELAY", "1s"),
        ("OUTBOX_PUBLISHER_ENABLED", "maybe"),
        ("OUTBOX_PUBLISHER_OUTAGES", "ignore"),
        ("OUTBOX_PUBLISHER_BATCHES", "5"),
        ("SPRING_RABBITMQ_PORT", "5672"),
    ],
)
def test_an_invalid_publisher_variable_is_named_at_the_start(variable: str, value: str) -> None:
    with pytest.raises(SettingsError, match=variable if "PORT" not in variable else "SPRING_RABBITMQ_HOST"):
        Settings.read({variable: value})


def test_two_names_of_one_setting_are_rejected() -> None:
    with pytest.raises(SettingsError, match="OUTBOX_PUBLISHER_BATCHSIZE and OUTBOX_PUBLISHER_BATCH_SIZE"):
        Settings.read({"OUTBOX_PUBLISHER_BATCHSIZE": "1", "OUTBOX_PUBLISHER_BATCH_SIZE": "2"})
    with pytest.raises(SettingsError, match="both set"):
        Settings.read({"SPRING_RABBITMQ_HOST": "mq", "INGESTION_TRANSPORT": "amqp://a:b@mq/"})


def test_the_separate_relay_reads_the_same_variables(tmp_path: Path) -> None:
    ways = {"INGESTION_STORE": f"sqlite:///{tmp_path / 'x.db'}", "INGESTION_TRANSPORT": "amqp://a:b@127.0.0.1:1/"}
    done = ingestion("relay", cwd=tmp_path, OUTBOX_PUBLISHER_ENABLED="false", **ways)
    assert (done.returncode, done.stdout) == (0, "relay: disabled by PILLARBOX_RELAY__ENABLED\n"), done.stderr
