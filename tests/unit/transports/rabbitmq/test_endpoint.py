"""The endpoint of a broker: a wrong URL is refused at once, and the password is never shown."""

import ssl

import pytest

from pillarbox.core.errors import ConfigurationError
from pillarbox.transports.rabbitmq import RabbitMQTransport
from pillarbox.transports.rabbitmq.plugin import BrokerEndpoint

CANARY = "canary-password"


@pytest.mark.parametrize(
    ("url", "host", "port", "vhost", "user", "password"),
    [
        ("amqp://app:secret@mq:5673/shop", "mq", 5673, "shop", "app", "secret"),
        ("amqp://app@mq/%2F", "mq", 5672, "/", "app", ""),
        ("amqp://mq", "mq", 5672, "/", "guest", "guest"),
        ("amqp://mq/", "mq", 5672, "/", "guest", "guest"),
        ("amqp://a%40b:p%2Fw@[::1]/a%2Fb", "::1", 5672, "a/b", "a@b", "p/w"),
        ("amqps://mq/", "mq", 5671, "/", "guest", "guest"),
    ],
)
def test_a_url_is_read(url: str, host: str, port: int, vhost: str, user: str, password: str) -> None:
    assert BrokerEndpoint.parse(url) == BrokerEndpoint(
        servers=((host, port),), vhost=vhost, user=user, password=password, tls=None
    )


@pytest.mark.parametrize(
    ("url", "servers"),
    [
        ("amqp://app:pw@mq1,mq2:5673/shop", (("mq1", 5672), ("mq2", 5673))),
        ("amqps://app:pw@mq1,mq2:5673/shop", (("mq1", 5671), ("mq2", 5673))),
        ("amqp://app:pw@[::1]:5673,[fd00::2]/shop", (("::1", 5673), ("fd00::2", 5672))),
    ],
)
def test_a_url_names_several_nodes(url: str, servers: tuple[tuple[str, int], ...]) -> None:
    endpoint = BrokerEndpoint.parse(url)
    assert endpoint.servers == servers
    assert [node.servers for node in endpoint.nodes] == [(server,) for server in servers]
    assert {(node.vhost, node.user, node.password) for node in endpoint.nodes} == {("shop", "app", "pw")}


def test_certificates_are_verified_unless_a_context_says_otherwise() -> None:
    tls = BrokerEndpoint.parse("amqps://mq/").tls
    assert tls is not None
    assert tls.verify_mode is ssl.CERT_REQUIRED
    assert tls.check_hostname
    own = ssl.create_default_context()
    assert BrokerEndpoint.parse("amqps://mq/", own).tls is own
    assert BrokerEndpoint.parse("amqp://mq/").tls is None
    with pytest.raises(ConfigurationError, match="amqps"):
        BrokerEndpoint.parse("amqp://mq/", own)


@pytest.mark.parametrize(
    "url",
    [
        f"http://app:{CANARY}@mq/",
        f"app:{CANARY}@mq",
        f"amqp://app:{CANARY}@mq:notaport/",
        f"amqp://app:{CANARY}@mq:99999/",
        f"amqp://app:{CANARY}@[mq/",
        f"amqp://app:{CANARY}@mq1,,mq2/",
        f"amqp://app:{CANARY}@mq1,mq2:port/",
        f"amqp://app:{CANARY}@mq/a/b",
        f"amqp://app:{CANARY}@mq/?heartbeat=5",
        f"amqp://app:12/{CANARY}@mq",
    ],
)
def test_an_invalid_url_is_rejected_without_being_quoted(url: str) -> None:
    with pytest.raises(ConfigurationError, match="URL") as raised:
        RabbitMQTransport(url)
    assert CANARY not in str(raised.value) + repr(raised.value)


def test_neither_password_nor_user_is_shown() -> None:
    transport = RabbitMQTransport(f"amqp://app:{CANARY}@mq:5673/shop")
    assert repr(transport) == "<RabbitMQTransport at mq:5673, virtual host 'shop'>"
    shown = repr(BrokerEndpoint.parse(f"amqp://app:{CANARY}@mq/"))
    assert CANARY not in shown
    assert "app" not in shown
