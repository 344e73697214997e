"""Preferences of a user, read and replaced over HTTP."""

from __future__ import annotations

from typing import Any

import httpx
from sqlalchemy import text

from tests.apps.notifications.api.problems import problem
from tests.apps.notifications.delivery.delivery_database import Deliveries

PATH = "/users/1/preferences"
WANTED: dict[str, Any] = {
    "time_zone": "Europe/Rome",
    "quiet_hours": {"starts": "22:00:00", "ends": "07:30:00"},
    "channels": {"*": {"SMS": False}, "ORDER_CREATED": {"EMAIL": True, "SMS": True}},
}


def test_a_user_without_preferences_has_a_time_zone(client: httpx.Client) -> None:
    assert client.get(PATH).json() == {"time_zone": "UTC", "quiet_hours": None, "channels": {}}


def test_put_stores_the_preferences_that_get_and_listeners_read(client: httpx.Client, deliveries: Deliveries) -> None:
    put = client.put(PATH, json=WANTED)
    assert (put.status_code, put.json()) == (200, WANTED)
    got = client.get(PATH)
    assert (got.json(), got.headers["etag"]) == (WANTED, put.headers["etag"])
    rows = deliveries.rows(text("SELECT event_type, channel, enabled FROM channel_preference WHERE user_id = 1"))
    assert {(kind, channel, bool(on)) for kind, channel, on in rows} == {
        ("*", "SMS", False),
        ("ORDER_CREATED", "EMAIL", True),
        ("ORDER_CREATED", "SMS", True),
    }


def test_a_put_replaces_everything(client: httpx.Client) -> None:
    client.put(PATH, json=WANTED)
    client.put(PATH, json={"time_zone": "Asia/Tokyo", "channels": {"*": {"PUSH": False}}})
    assert client.get(PATH).json() == {
        "time_zone": "Asia/Tokyo",
        "quiet_hours": None,
        "channels": {"*": {"PUSH": False}},
    }


def test_an_outdated_etag_prevents_an_update(client: httpx.Client) -> None:
    seen = client.get(PATH).headers["etag"]
    assert client.put(PATH, json=WANTED, headers={"If-Match": seen}).status_code == 200
    late = client.put(PATH, json={"time_zone": "Asia/Tokyo"}, headers={"If-Match": seen})
    problem(late, 412, "conflict")
    assert client.get(PATH).json() == WANTED
    assert client.put(PATH, json=WANTED, headers={"If-Match": "*"}).status_code == 200


WRONG: list[tuple[str, dict[str, Any]]] = [
    ("body.time_zone", {"time_zone": "Europe/Atlantis"}),
    ("body.time_zone", {"time_zone": "../../etc/passwd"}),
    ("body.time_zone", {"time_zone": None}),
    ("body.quiet_hours.starts", {"quiet_hours": {"starts": "25:00", "ends": "07:00"}}),
    ("body.quiet_hours", {"quiet_hours": {"starts": "07:00", "ends": "07:00"}}),
    ("body.quiet_hours", {"quiet_hours": {"starts": "22:00Z", "ends": "07:00"}}),
    ("body.quiet_hours.starts", {"quiet_hours": {"starts": 3600, "ends": "07:00"}}),
    ("body.channels.*.SMS", {"channels": {"*": {"SMS": 0}}}),
    ("body.channels.*.SMS", {"channels": {"*": {"SMS": "off"}}}),
    ("body.channels.*.PIGEON.[key]", {"channels": {"*": {"PIGEON": True}}}),
    ("body.channels..[key]", {"channels": {"": {"SMS": True}}}),
    (f"body.channels.{'x' * 256}.[key]", {"channels": {"x" * 256: {"SMS": True}}}),
    ("body.channels.\x00.[key]", {"channels": {"\x00": {"SMS": True}}}),
    ("body.channels", {"channels": {f"T{n}": {} for n in range(101)}}),
    ("body.chanels", {"chanels": {}}),
]


def test_an_invalid_field_is_named_and_nothing_is_written(client: httpx.Client) -> None:
    for field, change in WRONG:
        body = problem(client.put(PATH, json=WANTED | change), 422, "invalid")
        assert [error["field"] for error in body["errors"]] == [field]
    assert client.get(PATH).json()["time_zone"] == "UTC"


def test_a_body_that_is_not_json_is_a_problem(client: httpx.Client) -> None:
    def put(content: bytes) -> httpx.Response:
        return client.put(PATH, content=content, headers={"content-type": "application/json"})

    for content in (b"", b"{", b"[]", b'{"time_zone": "UTC", "channels": {"\\ud800": {}}}'):
        problem(put(content), 422, "invalid")
    for content in (b"\xff", b"[" * 60_000):
        problem(put(content), 400, "bad-request")


def test_an_unknown_user_is_not_found(client: httpx.Client) -> None:
    for answer in (
        client.get("/users/404/preferences", headers={"X-User-Id": "404"}),
        client.put("/users/404/preferences", json=WANTED, headers={"X-User-Id": "404"}),
    ):
        problem(answer, 404, "not-found")
