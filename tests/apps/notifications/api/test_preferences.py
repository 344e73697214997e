"""How a user wants to be told, read and replaced over HTTP."""

from __future__ import annotations

from typing import Any

import httpx
from sqlalchemy import text

from tests.apps.notifications.api.problems import problem
from tests.apps.notifications.delivery.post import Post

PATH = "/users/1/preferences"
WANTED: dict[str, Any] = {
    "time_zone": "Europe/Rome",
    "quiet_hours": {"starts": "22:00:00", "ends": "07:30:00"},
    "channels": {"*": {"SMS": False}, "ORDER_CREATED": {"EMAIL": True, "SMS": True}},
}


def test_a_user_who_chose_nothing_has_a_time_zone(client: httpx.Client) -> None:
    assert client.get(PATH).json() == {"time_zone": "UTC", "quiet_hours": None, "channels": {}}


def test_what_is_put_is_what_one_gets_and_what_the_listeners_find(client: httpx.Client, post: Post) -> None:
    put = client.put(PATH, json=WANTED)
    assert (put.status_code, put.json()) == (200, WANTED)
    got = client.get(PATH)
    assert (got.json(), got.headers["etag"]) == (WANTED, put.headers["etag"])
    rows = post.rows(text("SELECT event_type, channel, enabled FROM channel_preference WHERE user_id = 1"))
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


def test_whoever_saw_an_older_version_overwrites_nothing(client: httpx.Client) -> None:
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
    ("body.channels.*.PIGEON.[key]", {"channels": {"*": {"PIGEON": True}}}),
    ("body.channels..[key]", {"channels": {"": {"SMS": True}}}),
    (f"body.channels.{'x' * 256}.[key]", {"channels": {"x" * 256: {"SMS": True}}}),
    ("body.channels.\x00.[key]", {"channels": {"\x00": {"SMS": True}}}),
    ("body.channels", {"channels": {f"T{n}": {} for n in range(101)}}),
    ("body.chanels", {"chanels": {}}),
]


def test_what_is_wrong_is_named_and_nothing_is_written(client: httpx.Client) -> None:
    for field, change in WRONG:
        body = problem(client.put(PATH, json=WANTED | change), 422, "invalid")
        assert [error["field"] for error in body["errors"]] == [field]
    assert client.get(PATH).json()["time_zone"] == "UTC"


def test_a_body_that_is_no_json_is_a_problem(client: httpx.Client) -> None:
    def put(content: bytes) -> httpx.Response:
        return client.put(PATH, content=content, headers={"content-type": "application/json"})

    for content in (b"", b"{", b"[]", b'{"time_zone": "UTC", "channels": {"\\ud800": {}}}'):
        problem(put(content), 422, "invalid")
    for content in (b"\xff", b"[" * 60_000):
        problem(put(content), 400, "bad-request")


def test_a_user_nobody_knows_is_not_found(client: httpx.Client) -> None:
    for answer in (
        client.get("/users/404/preferences", headers={"X-User-Id": "404"}),
        client.put("/users/404/preferences", json=WANTED, headers={"X-User-Id": "404"}),
    ):
        problem(answer, 404, "not-found")
