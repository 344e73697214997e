"""The properties of the producer, as environment variables."""

from __future__ import annotations

import pytest

from apps.notifications import settings
from apps.notifications.__main__ import relay_variables
from pillarbox.core.clock import system_rng
from pillarbox.ops.settings import Settings
from tests.apps.notifications.processes import SETTINGS
from tests.servers.ports import free_port
from tests.unit.ops.settings.loading import load


def relay(**environment: str) -> Settings:
    """The settings of `python -m apps.notifications relay` in this environment."""
    return load(SETTINGS, **settings.producer(environment).as_relay_settings)


def test_the_defaults_are_those_of_the_guide() -> None:
    settings = relay()
    shipped, config = settings.relay, settings.relay.config
    assert (config.poll_interval, config.batch_size, config.initial_delay) == ("1s", 100, "2s")
    assert [shipped.policy.delay_after(attempt, system_rng()) for attempt in (1, 2, 1000)] == [1, 1, 1]
    assert (config.outages, settings.store.ledger) == ("wait", True)
    # An unavailable broker is probed as often.
    assert (config.breaker.first_delay, config.breaker.max_delay) == ("1s", "1s")


def test_each_property_can_be_set_in_milliseconds() -> None:
    changed = relay(
        NOTIFICATION_OUTBOX_POLL_INTERVAL="500",
        NOTIFICATION_OUTBOX_BATCH_SIZE="10",
        NOTIFICATION_OUTBOX_INITIAL_DELAY="0",
    ).relay.config
    assert (changed.poll_interval, changed.batch_size, changed.initial_delay) == ("0.5s", 10, "0.0s")


def test_the_relay_gets_the_properties_as_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    address = f"127.0.0.1:{free_port()}"
    monkeypatch.setenv("NOTIFICATION_OUTBOX_POLL_INTERVAL", "500")
    monkeypatch.setenv("NOTIFICATION_OUTBOX_BATCH_SIZE", "10")
    monkeypatch.setenv("NOTIFICATION_OUTBOX_INITIAL_DELAY", "0")
    monkeypatch.setenv("NOTIFICATIONS_METRICS", address)
    assert relay_variables() == {
        "PILLARBOX_RELAY__POLL_INTERVAL": "0.5s",
        "PILLARBOX_RELAY__BATCH_SIZE": "10",
        "PILLARBOX_RELAY__INITIAL_DELAY": "0.0s",
        "PILLARBOX_RELAY__LISTEN": address,
    }


def test_the_broker_can_be_configured_with_the_variables_of_spring(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PILLARBOX_TRANSPORT", raising=False)
    monkeypatch.setenv("SPRING_RABBITMQ_HOST", "localhost")
    monkeypatch.setenv("SPRING_RABBITMQ_PORT", "5672")
    assert settings.broker_url() == "amqp://guest:guest@localhost:5672/%2F"
