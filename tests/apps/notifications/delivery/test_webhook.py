"""One message to a real gateway: what it is told, and what its answer means."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from apps.notifications.delivery.log import Recipient
from apps.notifications.delivery.settings import Gateway as GatewayAt
from apps.notifications.delivery.webhook import Webhook
from pillarbox import PermanentError, RejectedError, UnavailableError
from tests.apps.notifications.delivery.outside import Gateway
from tests.apps.notifications.delivery.test_email import request
from tests.servers.ports import free_port

ADA = Recipient(user_id=7, name="Ada", email=None, phone=None, push_token="token-7")


@pytest.fixture
def webhook(gateway: Gateway) -> Iterator[Webhook]:
    made = Webhook(GatewayAt(url=f"{gateway.url}/push", token="t0k3n"), address_of=lambda user: user.push_token)
    yield made
    made.close()


def test_the_gateway_is_told_whom_what_and_which(webhook: Webhook, gateway: Gateway) -> None:
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
def test_taken_or_taken_before_is_done(webhook: Webhook, gateway: Gateway, status: int) -> None:
    gateway.answer = lambda _: status
    webhook.send(request(), ADA)


@pytest.mark.parametrize(
    ("status", "verdict"),
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
def test_any_other_answer_says_whose_fault_it_is(
    webhook: Webhook, gateway: Gateway, status: int, verdict: type[Exception]
) -> None:
    gateway.answer = lambda _: status
    with pytest.raises(verdict, match=f"answered {status}") as refusal:
        webhook.send(request(), ADA)
    assert type(refusal.value) is verdict


def test_a_gateway_that_is_not_there_is_nobodys_fault_and_no_secret_is_told() -> None:
    webhook = Webhook(GatewayAt(url=f"http://u:canary@127.0.0.1:{free_port()}/?k=canary"), address_of=lambda _: "x")
    with pytest.raises(UnavailableError, match="did not answer: ConnectError") as refusal:
        webhook.send(request(), ADA)
    webhook.close()
    assert "canary" not in str(refusal.value)


def test_a_user_without_an_address_is_given_up_at_once(webhook: Webhook, gateway: Gateway) -> None:
    with pytest.raises(PermanentError, match="user 7 has no address"):
        webhook.send(request(), replace(ADA, push_token=None))
    assert gateway.received == []
