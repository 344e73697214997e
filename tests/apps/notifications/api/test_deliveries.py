"""The state of a delivery by each channel: waiting, failed, delivered, dead."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.headerregistry import Address
from typing import Any

import httpx
from sqlalchemy import text

from apps.notifications.delivery.relay import delivering
from apps.notifications.delivery.settings import DeliverySettings, Gateway, MailServer
from apps.notifications.domain import Channel
from pillarbox import ExponentialBackoff, RelayConfig
from pillarbox.testing.waiting import eventually
from tests.apps.notifications.delivery.delivery_database import Deliveries
from tests.servers.ports import free_port

PATH = "/users/1/notifications/CUSTOMER/1/deliveries"


def by_channel(client: httpx.Client) -> dict[str, dict[str, Any]]:
    answer = client.get(PATH)
    assert answer.status_code == 200, answer.text
    return {one["channel"]: one for one in answer.json()["deliveries"]}


def test_a_delivery_without_an_attempt_is_waiting(client: httpx.Client, deliveries: Deliveries) -> None:
    soon = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=8)
    deliveries.request(1, Channel.EMAIL, Channel.IN_APP, event_id="e1")
    deliveries.request(1, Channel.PUSH, event_id="e2", deliver_after=soon)
    assert client.get(PATH).json()["event_id"] == "e1"
    found = by_channel(client)
    assert list(found) == ["EMAIL", "IN_APP"]
    assert found["EMAIL"] == {
        "channel": "EMAIL",
        "notification_id": 1,
        "state": "waiting",
        "failed_attempts": 0,
        "last_error": None,
        "next_attempt_at": None,
        "delivered_at": None,
    }
    [late] = client.get("/users/1/notifications/CUSTOMER/3/deliveries").json()["deliveries"]
    assert datetime.fromisoformat(late["next_attempt_at"]) == soon


async def test_each_channel_has_its_own_state(client: httpx.Client, deliveries: Deliveries) -> None:
    """EMAIL has no server, PUSH no address, SMS an unavailable gateway; IN_APP needs no server."""
    deliveries.add_users(3, push_token=None)
    deliveries.request(3, *Channel, event_id="e1")
    settings = DeliverySettings(
        mail=MailServer(host="127.0.0.1", port=free_port()),
        sender=Address(addr_spec="noreply@example.org"),
        push=Gateway(url="http://127.0.0.1:1/push"),
        sms=Gateway(url=f"http://127.0.0.1:{free_port()}/sms"),
    )
    retry = ExponentialBackoff(base="1h", jitter="none", max_attempts=5)
    path = "/users/3/notifications/CUSTOMER/1/deliveries"

    async def read_states() -> dict[str, Any] | None:
        found = {one["channel"]: one for one in (await user.get(path)).json()["deliveries"]}
        states = {channel: one["state"] for channel, one in found.items()}
        wanted = {"EMAIL": "waiting", "PUSH": "dead", "SMS": "waiting", "IN_APP": "delivered"}
        return (
            found
            if states == wanted and found["EMAIL"]["next_attempt_at"] and found["SMS"]["next_attempt_at"]
            else None
        )

    async with (
        httpx.AsyncClient(base_url=client.base_url, headers={"X-User-Id": "3"}) as user,
        delivering(deliveries.url, settings, retry=retry, config=RelayConfig(poll_interval="50ms")) as relay,
        relay,
    ):
        found = await eventually(read_states, within=90)
    assert found is not None
    assert "ConnectionRefusedError" in found["EMAIL"]["last_error"]
    assert found["EMAIL"]["failed_attempts"] > 0
    assert "user 3 has no address for PUSH" in found["PUSH"]["last_error"]
    assert found["PUSH"]["next_attempt_at"] is None
    assert found["IN_APP"]["delivered_at"] is not None


def test_a_delivery_past_the_retention_of_the_outbox_is_in_the_log_or_unknown(
    client: httpx.Client, deliveries: Deliveries
) -> None:
    deliveries.request(1, Channel.EMAIL, Channel.PUSH, event_id="e1")
    with deliveries.engine.begin() as connection:
        connection.execute(text("DELETE FROM delivery_message"))
        connection.execute(
            text(
                "INSERT INTO notification_delivery (audience, notification_id, user_id, channel, event_id, attempt,"
                " delivered_at) SELECT 'CUSTOMER', 1, 1, 'EMAIL', 'any', 2, created_at FROM customer_notification"
                " WHERE id = 1"
            )
        )
    found = by_channel(client)
    assert (found["EMAIL"]["state"], found["PUSH"]["state"]) == ("delivered", "unknown")
    assert found["EMAIL"]["delivered_at"] is not None
