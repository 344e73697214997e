"""The live feed: new ones as they come, none lost and none twice over a broken connection, and a clean end."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import httpx
from sqlalchemy import text

from apps.notifications.delivery.log import DeliveryLog
from apps.notifications.delivery.request import DeliveryRequest
from apps.notifications.tables import NOTIFICATIONS
from apps.notifications.words import Audience, Channel
from tests.apps.notifications.api.conftest import BOUND, Service
from tests.apps.notifications.api.problems import problem
from tests.apps.notifications.delivery.post import Post
from tests.servers.waiting import wait_until

PATH = "/users/1/notifications/live"


class Heard(NamedTuple):
    """One event of a stream."""

    id: str
    event_id: str


def publish(post: Post, *event_ids: str, user_id: int = 1, audience: Audience = Audience.CUSTOMER) -> None:
    """What the relay does for IN_APP."""
    for event_id in event_ids:
        post.ask(user_id, Channel.IN_APP, event_id=event_id, audience=audience)
        [(number,)] = post.rows(
            text(f"SELECT max(id) FROM {NOTIFICATIONS[audience].name} WHERE event_id = '{event_id}'")
        )
        request = DeliveryRequest(
            delivery_id=f"delivery of {event_id} to {user_id}",
            channel=Channel.IN_APP,
            audience=audience,
            notification_id=number,
            user_id=user_id,
            event_type="ORDER_CREATED",
            title="",
            body="",
        )
        DeliveryLog(post.engine).write(request, attempt=1)


class Stream:
    """A client's end of a stream."""

    def __init__(self, answer: httpx.Response) -> None:
        self.answer = answer
        self._lines = answer.iter_lines()

    def next(self) -> Heard:
        """The next notification; heartbeats are passed over."""
        fields: dict[str, str] = {}
        for line in self._lines:
            if not line and "data" in fields:
                assert fields["event"] == "notification"
                return Heard(fields["id"], json.loads(fields["data"])["event_id"])
            name, _, value = line.partition(": ")
            if name:
                fields[name] = value
        raise AssertionError("the stream has ended")

    def line(self) -> str:
        return next(self._lines)

    def rest(self) -> list[str]:
        return list(self._lines)


@contextmanager
def following(service: Service, *, after: str | None = None, user_id: int = 1) -> Iterator[Stream]:
    before = service.followers
    headers = {} if after is None else {"Last-Event-ID": after}
    with (
        service.client(user_id) as client,
        client.stream("GET", f"/users/{user_id}/notifications/live", headers=headers) as answer,
    ):
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        wait_until(lambda: service.followers == before + 1, bound=BOUND, what="the server knows its follower")
        yield Stream(answer)
    wait_until(lambda: service.followers <= before, bound=BOUND, what="the server forgets its follower")


def test_what_comes_from_now_on_is_heard_in_order(service: Service, post: Post) -> None:
    publish(post, "before")
    with following(service) as stream:
        publish(post, "e1", "e2", audience=Audience.ADMIN)
        publish(post, "e3")
        assert [stream.next().event_id for _ in range(3)] == ["e1", "e2", "e3"]


def test_everybody_hears_their_own_on_every_screen(service: Service, post: Post) -> None:
    with following(service) as phone, following(service) as desk, following(service, user_id=2) as other:
        publish(post, "for 1")
        publish(post, "for 2", user_id=2)
        assert phone.next() == desk.next()
        assert other.next().event_id == "for 2"
        publish(post, "again for 1")
        assert phone.next().event_id == desk.next().event_id == "again for 1"


def test_who_was_away_goes_on_where_they_were(service: Service, post: Post) -> None:
    with following(service) as stream:
        publish(post, "e1", "e2")
        seen = stream.next()
    publish(post, *(f"away-{number}" for number in range(120)))  # more than is read at once
    with following(service, after=seen.id) as stream:
        assert stream.next().event_id == "e2"
        assert [stream.next().event_id for _ in range(120)] == [f"away-{number}" for number in range(120)]
        publish(post, "live")
        assert stream.next().event_id == "live"


def test_from_the_very_beginning(service: Service, post: Post) -> None:
    publish(post, "e1", "e2")
    with following(service, after="0") as stream:
        assert [stream.next().event_id for _ in range(2)] == ["e1", "e2"]


def test_silence_is_filled_with_heartbeats(service: Service) -> None:
    with following(service) as stream:
        assert stream.line() == "retry: 2000"
        assert [line for line in (stream.line() for _ in range(4)) if line] == [": nothing new"] * 2


def test_a_client_that_goes_leaves_nothing_behind(service: Service) -> None:
    with following(service), following(service):
        assert service.followers == 2
    wait_until(lambda: service.followers == 0, bound=BOUND, what="the server forgets who went")


def test_a_server_that_stops_ends_its_streams(service: Service, post: Post) -> None:
    with following(service) as stream, following(service, user_id=2) as other:
        publish(post, "e1")
        assert stream.next().event_id == "e1"
        service.tell_to_stop()
        for one in (stream, other):
            assert all(not line or line.startswith((":", "retry")) for line in one.rest())  # to the end, no error
    service.stop()
    assert service.followers == 0


def test_a_place_that_is_none_is_a_problem(client: httpx.Client) -> None:
    for place in ("soon", "-1", str(2**63)):
        problem(client.get(PATH, headers={"Last-Event-ID": place}), 422, "invalid")


def test_there_is_room_for_so_many(post: Post) -> None:
    service = Service(post.engine, most_followers=1)
    try:
        with following(service), service.client() as client:
            refusal = client.get(PATH)
            problem(refusal, 503, "busy")
            assert refusal.headers["retry-after"] == "5"
    finally:
        service.stop()
