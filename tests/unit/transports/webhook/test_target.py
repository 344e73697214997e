"""The bytes of a request."""

from pillarbox.testing.conformance.transports.sending import outgoing
from pillarbox.transports.webhook import WebhookAddress, WebhookTransport
from pillarbox.transports.webhook.plugin import HttpEndpoint, WebhookOptions
from pillarbox.transports.webhook.target import Target

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def request(url: str, address: WebhookAddress, headers: dict[str, str]) -> list[str]:
    target = Target(address, HttpEndpoint.parse(url), WebhookOptions(), ())
    head, _, body = target.request(outgoing("e1", address, headers=headers)).partition(b"\r\n\r\n")
    assert body == b"e1"
    return head.decode().split("\r\n")


def test_a_header_of_the_settings_replaces_that_of_the_event() -> None:
    lines = request("https://host", WebhookTransport.to(headers={"Traceparent": "fixed"}), {"traceparent": TRACE})
    assert [line for line in lines if line.lower().startswith("traceparent")] == ["traceparent: fixed"]
    lines = request("https://host", WebhookTransport.to(), {"traceparent": TRACE})
    assert f"traceparent: {TRACE}" in lines


def test_a_path_keeps_the_query_of_the_url_of_the_transport() -> None:
    assert (
        request("https://host/in?token=1", WebhookTransport.to("/orders"), {})[0] == "POST /in/orders?token=1 HTTP/1.1"
    )
    by_key = WebhookTransport.to("/orders/{key}?a={event_type}")
    assert request("https://host/in?token=1", by_key, {})[0] == (
        "POST /in/orders/THING%3A1?a=thing.happened&token=1 HTTP/1.1"
    )
    whole = WebhookTransport.to("https://other/x?y=1")
    assert request("https://host/in?token=1", whole, {})[0] == "POST /x?y=1 HTTP/1.1"
