"""The sample files match the settings, and a relay can be created from each."""

import sys
from pathlib import Path

import pytest

from pillarbox import BreakerConfig, Handlers
from pillarbox.ops.settings import Settings
from pillarbox.ops.wiring import describe_routing, make_outbox, make_relay, open_store, open_transports
from pillarbox.relay.config import RelayConfig
from pillarbox.retry_policies import ExponentialBackoff, FixedDelay
from tests.unit.ops.settings.loading import load

SAMPLES = Path(__file__).resolve().parents[4] / "docs" / "samples"


@pytest.fixture(autouse=True)
def applications(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The modules of the samples' handlers."""
    for module in ("school.notifications", "shop.handlers"):
        package, name = module.split(".")
        (tmp_path / package).mkdir()
        (tmp_path / package / f"{name}.py").write_text("from pillarbox import Handlers\nhandlers = Handlers()\n")
        monkeypatch.delitem(sys.modules, package, raising=False)
        monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.syspath_prepend(tmp_path)


def sample(name: str) -> Settings:
    return load(SAMPLES / f"{name}.toml")


@pytest.mark.parametrize("file", sorted(SAMPLES.glob("*.toml")), ids=lambda file: file.stem)
async def test_a_relay_can_be_created_from_each_sample(file: Path) -> None:
    settings = load(file)
    make_outbox(settings)
    relay = make_relay(settings, store=open_store(settings.store), transports=open_transports(settings))
    assert relay.id


def test_the_notification_producer() -> None:
    settings = sample("notifications")
    assert settings.relay.config == RelayConfig(
        batch_size=100,
        poll_interval="1s",
        initial_delay="2s",
        adaptive=False,
        wakeup="none",
        breaker=BreakerConfig(first_delay="1s", max_delay="1s", jitter="none"),
    )
    assert settings.relay.policy == FixedDelay(delay="1s", max_attempts="unlimited")
    assert settings.store.ledger is True
    assert [queue.name for queue in settings.transports["rabbit"].rabbitmq.queues] == [
        f"notification.{audience}" for audience in ("restaurant", "customer", "agency", "admin")
    ]
    assert describe_routing(settings) == (
        "* of RESTAURANT → restaurant; * of CUSTOMER → customer; * of AGENCY → agency; * of ADMIN → admin"
    )


def test_the_ingestion_service() -> None:
    settings = sample("ingestion")
    assert settings.relay.config == RelayConfig(batch_size=50, poll_interval="2s", adaptive=False, wakeup="none")
    assert settings.relay.policy == ExponentialBackoff(
        base="10s", multiplier=2, max_delay="1h", jitter="none", max_attempts=11
    )
    [queue] = settings.transports["rabbit"].rabbitmq.queues
    assert (queue.max_length, queue.message_ttl, queue.overflow) == (10_000, "7 days", None)
    assert queue.dead_letter is not None
    assert (queue.dead_letter.exchange, queue.dead_letter.queue) == ("doc.events.dlx", "document.uploaded.dlq")


def test_the_outbox_module() -> None:
    settings = sample("school")
    assert settings.relay.config == RelayConfig(
        batch_size=50, poll_interval="10s", lease="5m", adaptive=False, wakeup="none"
    )
    assert settings.relay.policy == ExponentialBackoff(
        base="30s", max_delay="1800s", jitter="additive", max_attempts=10
    )
    assert settings.relay.name == "default"
    assert isinstance(open_transports(settings)["handlers"], Handlers)


def test_the_complete_sample_has_the_defaults() -> None:
    settings = sample("everything")
    assert settings.relay.config == RelayConfig()
    assert settings.relay.policy == ExponentialBackoff()
    assert settings.notes == ()
