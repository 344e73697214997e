"""The environment is read once and checked before anything starts."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from apps.ingestion.settings import Settings, SettingsError
from tests.apps.ingestion.running import ingestion


def test_without_any_variable_it_is_embedded_and_listens_on_8081() -> None:
    settings = Settings.read({"PATH": "/bin"})
    assert settings == Settings()
    assert (settings.store, settings.transport, settings.relay) == ("sqlite:///ingestion.db", "", "inside")
    assert (settings.host, settings.port) == ("127.0.0.1", 8081)


def test_every_variable_has_its_place(tmp_path: Path) -> None:
    secret = tmp_path / "store"
    secret.write_text("postgresql://app:pw@db/ingestion_db\n")
    settings = Settings.read(
        {
            "INGESTION_STORE_FILE": str(secret),
            "INGESTION_TRANSPORT": "amqp://app:pw@mq/",
            "INGESTION_RELAY": "beside",
            "INGESTION_LISTEN": "0.0.0.0:80",
            "INGESTION_IDEMPOTENCY_HOURS": "48",
            "INGESTION_MAX_BACKLOG": "500",
            "INGESTION_LOG_LEVEL": "DEBUG",
        }
    )
    assert settings == Settings(
        store="postgresql://app:pw@db/ingestion_db",
        transport="amqp://app:pw@mq/",
        relay="beside",
        host="0.0.0.0",  # noqa: S104 - compared, not bound
        port=80,
        keep_keys=timedelta(hours=48),
        most_backlog=500,
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
        ("INGESTION_RELAY", "beside"),
        ("INGESTION_LISTEN", "8081"),
        ("INGESTION_LISTEN", "127.0.0.1:70000"),
        ("INGESTION_IDEMPOTENCY_HOURS", "0"),
        ("INGESTION_MAX_BACKLOG", "many"),
        ("INGESTION_LOG_LEVEL", "LOUD"),
        ("INGESTION_STORAGE", "typo"),
    ],
)
def test_what_cannot_work_is_named_without_a_password(variable: str, value: str) -> None:
    with pytest.raises(SettingsError) as refused:
        Settings.read({variable: value})
    assert variable in str(refused.value)
    assert "pw" not in str(refused.value)


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    done = ingestion("serve", cwd=tmp_path, INGESTION_RELAY="no", INGESTION_LISTEN="here", INGESTION_COLOUR="red")
    assert done.returncode == 2
    assert all(f"INGESTION_{name}" in done.stderr for name in ("RELAY", "LISTEN", "COLOUR"))


def test_a_consumer_without_a_broker_says_so(tmp_path: Path) -> None:
    done = ingestion("validate", cwd=tmp_path)
    assert done.returncode == 2
    assert "INGESTION_TRANSPORT is not set" in done.stderr
