"""A user's notifications of all four tables: pages, filters, read state."""

from __future__ import annotations

from base64 import b64encode
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
from sqlalchemy import text

from apps.notifications.domain import Audience, Channel
from tests.apps.notifications.api.problems import problem
from tests.apps.notifications.delivery.delivery_database import Deliveries

PATH = "/users/1/notifications"
NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)


def fill(deliveries: Deliveries, events: int = 12) -> list[str]:
    """Events at three moments, so that many share one, over all audiences; newest first."""
    for number in range(events):
        deliveries.request(
            1,
            Channel.IN_APP,
            audience=list(Audience)[number % 4],
            event_id=f"e{number}",
            created_at=NOON + timedelta(minutes=number % 3),
        )
    deliveries.request(2, Channel.IN_APP, event_id="another user's")
    return [f"e{number}" for number in range(events)]


def pages(client: httpx.Client, **query: Any) -> list[list[dict[str, Any]]]:
    """One page after the other, to the end."""
    found = []
    cursor: dict[str, str] = {}
    while True:
        page = client.get(PATH, params={**query, **cursor}).json()
        found.append(page["notifications"])
        if page["next"] is None:
            return found
        cursor = {"cursor": page["next"]}


def test_pages_contain_every_notification_once_newest_first(client: httpx.Client, deliveries: Deliveries) -> None:
    events = fill(deliveries)
    for limit in (1, 5, 12, 100):
        found = pages(client, limit=limit)
        every = [one for page in found for one in page]
        assert sorted(one["event_id"] for one in every) == sorted(events)
        order = [(one["created_at"], one["audience"], one["id"]) for one in every]
        assert order == sorted(order, reverse=True)
        assert all(len(page) == limit for page in found[:-1])


def test_a_new_notification_does_not_shift_later_pages(client: httpx.Client, deliveries: Deliveries) -> None:
    fill(deliveries)
    first = client.get(PATH, params={"limit": 6}).json()
    deliveries.request(1, Channel.IN_APP, event_id="new")
    second = client.get(PATH, params={"limit": 6, "cursor": first["next"]}).json()
    seen = [one["event_id"] for one in first["notifications"] + second["notifications"]]
    assert len(set(seen)) == 12
    assert "new" not in seen


def test_a_notification_has_all_its_fields(client: httpx.Client, deliveries: Deliveries) -> None:
    deliveries.request(1, Channel.EMAIL, title="Hello", body="World", event_id="e1", created_at=NOON)
    [one] = client.get(PATH).json()["notifications"]
    assert one == {
        "audience": "CUSTOMER",
        "id": 1,
        "user_id": 1,
        "channel": "EMAIL",
        "event_id": "e1",
        "event_type": "ORDER_CREATED",
        "aggregate_id": 1,
        "title": "Hello",
        "body": "World",
        "payload": {"user_id": 1},
        "created_at": "2026-11-15T12:00:00.000000Z",
        "deliver_after": None,
        "read_at": None,
    }


def test_the_list_can_be_filtered_by_channel(client: httpx.Client, deliveries: Deliveries) -> None:
    deliveries.request(1, Channel.EMAIL, Channel.IN_APP, event_id="e1")
    [[one]] = pages(client, channel="IN_APP")
    assert one["channel"] == "IN_APP"


def test_the_list_can_be_filtered_by_unread(client: httpx.Client, deliveries: Deliveries) -> None:
    fill(deliveries)
    [page] = pages(client, limit=100)
    first = page[0]
    read = f"{PATH}/{first['audience']}/{first['id']}/read"
    assert client.put(read).status_code == 204
    [unread] = pages(client, limit=100, unread=True)
    assert [one["event_id"] for one in unread] == [one["event_id"] for one in page[1:]]


def test_marking_as_read_again_keeps_the_first_time(client: httpx.Client, deliveries: Deliveries) -> None:
    deliveries.request(1, Channel.IN_APP)

    def read_at() -> str:
        assert client.put(f"{PATH}/CUSTOMER/1/read").status_code == 204
        return str(client.get(PATH).json()["notifications"][0]["read_at"])

    assert read_at() == read_at() != "None"


def test_marking_all_as_read_affects_only_the_user(client: httpx.Client, deliveries: Deliveries) -> None:
    fill(deliveries)
    client.put(f"{PATH}/CUSTOMER/1/read")
    assert client.post(f"{PATH}/read").json() == {"read": 11}
    assert client.post(f"{PATH}/read").json() == {"read": 0}
    assert pages(client, unread=True) == [[]]
    others = client.get("/users/2/notifications", params={"unread": True}, headers={"X-User-Id": "2"}).json()
    assert len(others["notifications"]) == 1


def test_a_notification_of_another_user_is_not_found(client: httpx.Client, deliveries: Deliveries) -> None:
    deliveries.request(2, Channel.IN_APP)
    problem(client.put(f"{PATH}/CUSTOMER/1/read"), 404, "not-found")
    problem(client.get(f"{PATH}/CUSTOMER/1/deliveries"), 404, "not-found")
    assert deliveries.rows(text("SELECT read_at FROM customer_notification")) == [(None,)]


UNLIKELY = (
    b"null",
    b"\xff",
    b'["2026-11-15", "CUSTOMER", 1]',
    b'["2026-11-15T12:00:00Z", "PIGEON", 1]',
    b'["2026-11-15T12:00:00Z", "CUSTOMER", Infinity]',
    b'["2026-11-15T12:00:00Z", "CUSTOMER", -1]',
    b'["0001-01-01T00:00:00+14:00", "CUSTOMER", 1]',
)
NONSENSE: list[dict[str, Any]] = [
    {"limit": 0},
    {"limit": 101},
    {"limit": "many"},
    {"unread": "perhaps"},
    {"channel": "PIGEON"},
    {"cursor": "x"},
    {"cursor": "x" * 201},
    {"cursor": "é"},
    *({"cursor": b64encode(cursor).decode()} for cursor in UNLIKELY),
]


def test_an_invalid_query_is_a_problem(client: httpx.Client) -> None:
    for query in NONSENSE:
        problem(client.get(PATH, params=query), 422, "invalid")


def test_an_invalid_notification_path_is_a_problem(client: httpx.Client) -> None:
    for path in ("PIGEONS/1/read", "CUSTOMER/0/read", f"CUSTOMER/{2**63}/read", "CUSTOMER/x/read"):
        problem(client.put(f"{PATH}/{path}"), 422, "invalid")
