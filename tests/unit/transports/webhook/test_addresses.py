"""URLs, secrets and headers are checked when they are set, and never shown."""

from typing import Any

import pytest

from pillarbox import Destination, Relay
from pillarbox.core.errors import ConfigurationError
from pillarbox.schemes import open_source, open_transport
from pillarbox.stores.memory import MemoryStore
from pillarbox.transports.webhook import WebhookAddress, WebhookTransport
from pillarbox.transports.webhook.plugin import HttpEndpoint

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def rejected(make: Any, *arguments: Any, **options: Any) -> str:
    with pytest.raises(ConfigurationError) as caught:
        make(*arguments, **options)
    return str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "ftp://host/",
        "https:///path",
        "https://host:port/",
        "https://host:99999/",
        "https://host:0/",
        "https://a..b/",
        "https://.host/",
        f"https://{'a' * 64}.example/",
        "https://us3r:passw0rd@host/",
        "https://ho st/",
        "https://host/a b",
        "https://host/#part",
        "https://hösts/",
        "https://{key}.example/",
        "https://127.1/",
        "https://2130706433/",
        "https://0177.0.0.1/",
        "https://[::1/",
    ],
)
def test_an_invalid_url_is_rejected_and_not_quoted(url: str) -> None:
    for make in (WebhookTransport, lambda text: WebhookAddress(url=text)):
        text = rejected(make, url)
        assert url not in text
        assert "passw0rd" not in text


@pytest.mark.parametrize("url", ["https://host/{key", "https://host/{event_id}", "/{key!r}"])
def test_an_invalid_template_is_rejected(url: str) -> None:
    rejected(WebhookAddress, url=url)


def test_the_url_of_a_transport_has_no_placeholders() -> None:
    assert "placeholders" in rejected(WebhookTransport, "https://host/{key}")


def test_an_endpoint_shows_scheme_host_and_port_only() -> None:
    assert str(HttpEndpoint.parse("https://host/T0/B0/secret?token=x")) == "https://host"
    assert str(HttpEndpoint.parse("http://[fd00::1]:8080/secret")) == "http://[fd00::1]:8080"


@pytest.mark.parametrize(
    ("base", "path", "joined"),
    [
        ("https://host", "", "https://host"),
        ("https://host/", "a", "https://host/a"),
        ("https://host/base", "/a/b?c", "https://host/base/a/b?c"),
        ("https://host/base/", "/a", "https://host/base/a"),
        ("https://host/base?token=1", "/a", "https://host/base/a?token=1"),
        ("https://host?token=1", "/a?b=2", "https://host/a?b=2&token=1"),
        ("https://host/base?token=1", "", "https://host/base?token=1"),
    ],
)
def test_a_path_is_below_the_url_of_the_transport(base: str, path: str, joined: str) -> None:
    assert HttpEndpoint.parse(base).join(path) == joined


@pytest.mark.parametrize(
    "headers",
    [
        {"webhook-id": "1"},
        {"Content-Length": "1"},
        {"CE-Type": "1"},
        {"Pillarbox-x": "1"},
        {"Transfer-Encoding": "chunked"},
        {"a b": "1"},
        {"": "1"},
        {"X": "s3cret\r\nHost: a"},
        {"X": "s3cret é"},
    ],
)
def test_a_header_that_cannot_be_set_is_rejected_and_its_value_not_quoted(headers: dict[str, str]) -> None:
    for make in (
        lambda given: WebhookAddress(headers=given),
        lambda given: WebhookTransport("https://h", headers=given),
    ):
        assert "s3cret" not in rejected(make, headers)


@pytest.mark.parametrize("secrets", [[SECRET[:-1] + "!"], ["plain"], SECRET])
def test_an_invalid_secret_is_rejected_and_not_quoted(secrets: Any) -> None:
    for make in (
        lambda given: WebhookAddress(secrets=given),
        lambda given: WebhookTransport("https://h", secrets=given),
    ):
        assert "MfKQ9r8G" not in rejected(make, secrets)


@pytest.mark.parametrize(
    "options",
    [
        {"connections_per_host": 0},
        {"connections_per_host": 30, "total_connections": 20},
        {"allow_networks": ["10.0.0.1/8"]},
        {"max_body": 0},
        {"connect_timeout": "0s"},
        {"max_retry_after": "-1s"},
    ],
)
def test_an_option_that_cannot_work_is_rejected(options: dict[str, Any]) -> None:
    assert next(iter(options)) in rejected(WebhookTransport, "https://host", **options)


def test_neither_transport_nor_address_show_a_secret() -> None:
    transport = WebhookTransport("https://host/p4th", secrets=[SECRET], headers={"Authorization": "t0ken"})
    address = WebhookTransport.to("https://host/p4th", secrets=[SECRET], headers={"Authorization": "t0ken"})
    shown = repr(transport) + repr(address) + str(address) + repr(transport._options)
    assert [one for one in ("MfKQ9r8G", "p4th", "t0ken") if one in shown] == []


def test_addresses_are_equal_if_everything_is() -> None:
    assert WebhookTransport.to("/a", headers={"X": "1"}) == WebhookTransport.to("/a", headers={"X": "1"})
    assert WebhookTransport.to("/a", headers={"X": "1"}) != WebhookTransport.to("/a", headers={"X": "2"})
    assert len({WebhookTransport.to("/a", secrets=[SECRET]), WebhookTransport.to("/a", secrets=[SECRET])}) == 1


def test_pipelined_ordering_is_rejected() -> None:
    text = rejected(
        Relay,
        store=MemoryStore(),
        transports={"hooks": WebhookTransport("https://host")},
        destinations={"a": Destination(WebhookTransport.to(), ordering="pipelined")},
    )
    assert "does not keep the order" in text


def test_the_transport_is_opened_by_its_url_and_nothing_can_be_received() -> None:
    for scheme in ("http", "https"):
        assert isinstance(open_transport(f"{scheme}://host", connections_per_host=5), WebhookTransport)
        assert "nothing can be received" in rejected(open_source, f"{scheme}://host", "queue")
