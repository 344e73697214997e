"""Stores, transports and sources by the scheme of their URL."""

from pathlib import Path

import pytest

from pillarbox import ConfigurationError, open_source, open_store, open_transport
from pillarbox.schemes import TRANSPORTS, is_registered, kind_of_transport, transport_plugin
from pillarbox.transports.memory import MemoryTransport
from pillarbox.transports.rabbitmq import Queue, RabbitMQSource, RabbitMQTransport

TOY = """
from pillarbox.adapters import TransportPlugin
from pillarbox.transports.memory import MemoryTransport
from pillarbox.transports.memory_source import MemorySource


class ToyPlugin(TransportPlugin):
    sources = True

    def open(self, url, options):
        return MemoryTransport(**options)

    def source(self, url, name, group, options):
        source = MemorySource(**options)
        source.opened_with = (url, name, group)
        return source


class SendOnlyPlugin(TransportPlugin):
    pass
"""


@pytest.fixture
def _toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another distribution, which registers the schemes toy, sendonly and broken."""
    (tmp_path / "toy_broker.py").write_text(TOY)
    metadata = tmp_path / "toy_broker-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-broker\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(
        "[pillarbox.transports]\n"
        "toy = toy_broker:ToyPlugin\n"
        "sendonly = toy_broker:SendOnlyPlugin\n"
        "broken = toy_broker:MissingPlugin\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))


def test_a_source_of_rabbitmq_is_a_queue_and_shows_no_password() -> None:
    source = open_source("amqp://app:secret@mq/", "billing", group="ignored", prefetch=3)
    assert isinstance(source, RabbitMQSource)
    assert repr(source) == "<RabbitMQSource 'billing' at mq:5672, virtual host '/'>"


def test_the_options_of_a_source_are_those_of_its_class() -> None:
    with pytest.raises(ConfigurationError, match="prefetch is 0"):
        open_source("amqp://mq/", "billing", prefetch=0)
    with pytest.raises(TypeError, match="prefech"):
        open_source("amqp://mq/", "billing", prefech=1)


@pytest.mark.parametrize("url", ["memory://", "stdout://"])
def test_a_transport_without_a_broker_has_no_source(url: str) -> None:
    with pytest.raises(ConfigurationError, match=f"nothing can be received from {url}; use the URL of a broker"):
        open_source(url, "billing")


@pytest.mark.parametrize("url", ["ampq://app:secret@mq/", "billing", ""])
def test_a_url_without_an_adapter_is_refused_and_not_quoted(url: str) -> None:
    for opening in (lambda: open_source(url, "billing"), lambda: open_transport(url), lambda: open_store(url)):
        with pytest.raises(ConfigurationError, match="there is no") as refused:
            opening()
        assert "secret" not in str(refused.value)


@pytest.mark.usefixtures("_toy")
def test_a_source_of_another_distribution_gets_url_name_group_and_options() -> None:
    source = open_source("toy://host", "orders", group="billing", prefetch=2)
    assert getattr(source, "opened_with", None) == ("toy://host", "orders", "billing")
    assert isinstance(open_transport("toy://host", latency="1ms"), MemoryTransport)
    assert is_registered(TRANSPORTS, "toy")
    assert kind_of_transport("toy") == "toy"


@pytest.mark.usefixtures("_toy")
def test_a_plugin_has_sources_only_if_it_says_so() -> None:
    with pytest.raises(ConfigurationError, match="nothing can be received from sendonly://"):
        open_source("sendonly://host", "orders")


@pytest.mark.usefixtures("_toy")
def test_an_adapter_that_cannot_be_loaded_is_named() -> None:
    with pytest.raises(ConfigurationError, match="broken:// cannot be loaded from toy_broker:MissingPlugin"):
        open_transport("broken://host")


def test_a_transport_takes_tables_of_a_settings_file() -> None:
    transport = open_transport(
        "amqp://mq/",
        exchanges=[{"name": "shop"}],
        queues=[
            {
                "name": "orders",
                "bindings": [{"exchange": "shop", "routing_key": "order.*"}],
                "dead_letter": {"exchange": "", "queue": "orders.dlq"},
            },
            Queue(name="audit"),
        ],
    )
    assert isinstance(transport, RabbitMQTransport)


@pytest.mark.parametrize(
    ("scheme", "kind", "pipelined", "sources"),
    [
        ("amqp", "rabbitmq", True, True),
        ("amqps", "rabbitmq", True, True),
        ("nats", "nats", True, True),
        ("tls", "nats", True, True),
        ("stdout", "stdout", False, False),
        ("memory", "memory", True, False),
    ],
)
def test_our_plugins_declare_what_their_transports_support(
    scheme: str, kind: str, pipelined: bool, sources: bool
) -> None:
    plugin = transport_plugin(scheme)
    assert (kind_of_transport(scheme), plugin.pipelined, plugin.sources) == (kind, pipelined, sources)
    assert plugin.open(f"{scheme}://", {}).pace.in_order == pipelined
