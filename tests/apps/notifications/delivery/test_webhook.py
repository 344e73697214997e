"""One message to a real gateway: the request, and the error for each status."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from apps.notifications.delivery.log import Recipient
from apps.notifications.delivery.settings import Gateway as GatewayAt
from apps.notifications.delivery.webhook import Webhook
from pillarbox import PermanentError, RejectedError, UnavailableError
from tests.apps.notifications.delivery.servers import Gateway
from tests.apps.notifications.delivery.test_email import request
from tests.servers.ports import free_port

ADA = Recipient(user_id=7, name="Ada", email=None, phone=None, push_token="token-7")


@pytest.fixture
def webhook(gateway: Gateway) -> Iterator[Webhook]:
    made = Webhook(GatewayAt(url=f"{gateway.url}/push", token="t0k3n"), address_of=lambda user: user.push_token)
    yield made
    made.close()


def test_the_request_has_the_message_and_the_idempotency_key(webhook: Webhook, gateway: Gateway) -> None:
    webhook.send(request("d1"), ADA)
    [hook] = gateway.received
    assert (hook.path, hook.key, hook.authorization) == ("/push", "d1", "Bearer t0k3n")
    assert hook.message == {
        "to": "token-7",
        "title": "Order received",
        "body": "Thank you.",
        "event_type": "ORDER_CREATED",
        "notification_id": 1,
        "audience": "CUSTOMER",
    }


@pytest.mark.parametrize("status", [200, 202, 204, 409])
def test_success_and_conflict_count_as_accepted(webhook: Webhook, gateway: Gateway, status: int) -> None:
    gateway.answer = lambda _: status
    webhook.send(request(), ADA)


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, PermanentError),
        (404, PermanentError),
        (410, PermanentError),
        (422, PermanentError),
        (401, UnavailableError),
        (408, UnavailableError),
        (425, UnavailableError),
        (429, UnavailableError),
        (500, RejectedError),
        (502, UnavailableError),
        (503, UnavailableError),
        (302, RejectedError),
    ],
)
def test_the_status_determines_the_error(
    webhook: Webhook, gateway: Gateway, status: int, error: type[Exception]
) -> None:
    gateway.answer = lambda _: status
    with pytest.raises(error, match=f"answered {status}") as refusal:
        webhook.send(request(), ADA)
    assert type(refusal.value) is error


def test_a_gateway_that_does_not_respond_is_unavailable_and_the_error_has_no_secret() -> None:
    webhook = Webhook(GatewayAt(url=f"http://u:canary@127.0.0.1:{free_port()}/?k=canary"), address_of=lambda _: "x")
    with pytest.raises(UnavailableError, match="did not respond: ConnectError") as refusal:
        webhook.send(request(), ADA)
    webhook.close()
    assert "canary" not in str(refusal.value)


def test_a_user_without_an_address_is_a_permanent_error(webhook: Webhook, gateway: Gateway) -> None:
    with pytest.raises(PermanentError, match="user 7 has no address"):
        webhook.send(request(), replace(ADA, push_token=None))
    assert gateway.received == []
