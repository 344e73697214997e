"""The live feed: new notifications in order, no loss and no duplicates after a reconnect, and a clean shutdown."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import httpx
from sqlalchemy import text

from apps.notifications.delivery.log import DeliveryLog
from apps.notifications.delivery.request import DeliveryRequest
from apps.notifications.domain import Audience, Channel
from apps.notifications.tables import NOTIFICATIONS
from tests.apps.notifications.api.conftest import BOUND, Service
from tests.apps.notifications.api.problems import problem
from tests.apps.notifications.delivery.delivery_database import Deliveries
from tests.servers.waiting import wait_until

PATH = "/users/1/notifications/live"


class Received(NamedTuple):
    """One event of a stream."""

    id: str
    event_id: str


def publish(deliveries: Deliveries, *event_ids: str, user_id: int = 1, audience: Audience = Audience.CUSTOMER) -> None:
    """Write the delivery log, as the relay does for IN_APP."""
    for event_id in event_ids:
        deliveries.request(user_id, Channel.IN_APP, event_id=event_id, audience=audience)
        [(number,)] = deliveries.rows(
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
        DeliveryLog(deliveries.engine).write(request, attempt=1)


class Stream:
    """The client's side of a stream."""

    def __init__(self, answer: httpx.Response) -> None:
        self.answer = answer
        self._lines = answer.iter_lines()

    def next(self) -> Received:
        """The next notification; heartbeats are skipped."""
        fields: dict[str, str] = {}
        for line in self._lines:
            if not line and "data" in fields:
                assert fields["event"] == "notification"
                return Received(fields["id"], json.loads(fields["data"])["event_id"])
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
        wait_until(lambda: service.followers == before + 1, bound=BOUND, what="the server adds the follower")
        yield Stream(answer)
    wait_until(lambda: service.followers <= before, bound=BOUND, what="the server removes the follower")


def test_a_client_receives_new_notifications_in_order(service: Service, deliveries: Deliveries) -> None:
    publish(deliveries, "before")
    with following(service) as stream:
        publish(deliveries, "e1", "e2", audience=Audience.ADMIN)
        publish(deliveries, "e3")
        assert [stream.next().event_id for _ in range(3)] == ["e1", "e2", "e3"]


def test_every_client_receives_the_notifications_of_its_user(service: Service, deliveries: Deliveries) -> None:
    with following(service) as phone, following(service) as desktop, following(service, user_id=2) as other:
        publish(deliveries, "for 1")
        publish(deliveries, "for 2", user_id=2)
        assert phone.next() == desktop.next()
        assert other.next().event_id == "for 2"
        publish(deliveries, "again for 1")
        assert phone.next().event_id == desktop.next().event_id == "again for 1"


def test_a_client_that_reconnects_resumes_at_its_position(service: Service, deliveries: Deliveries) -> None:
    with following(service) as stream:
        publish(deliveries, "e1", "e2")
        seen = stream.next()
    publish(deliveries, *(f"missed-{number}" for number in range(120)))  # more than one batch
    with following(service, after=seen.id) as stream:
        assert stream.next().event_id == "e2"
        assert [stream.next().event_id for _ in range(120)] == [f"missed-{number}" for number in range(120)]
        publish(deliveries, "live")
        assert stream.next().event_id == "live"


def test_position_zero_returns_all_notifications(service: Service, deliveries: Deliveries) -> None:
    publish(deliveries, "e1", "e2")
    with following(service, after="0") as stream:
        assert [stream.next().event_id for _ in range(2)] == ["e1", "e2"]


def test_an_idle_stream_sends_heartbeats(service: Service) -> None:
    with following(service) as stream:
        assert stream.line() == "retry: 2000"
        assert [line for line in (stream.line() for _ in range(4)) if line] == [": nothing new"] * 2


def test_a_client_that_disconnects_is_removed(service: Service) -> None:
    with following(service), following(service):
        assert service.followers == 2
    wait_until(lambda: service.followers == 0, bound=BOUND, what="the server removes both followers")


def test_a_server_that_stops_ends_its_streams_cleanly(service: Service, deliveries: Deliveries) -> None:
    with following(service) as stream, following(service, user_id=2) as other:
        publish(deliveries, "e1")
        assert stream.next().event_id == "e1"
        service.request_stop()
        for one in (stream, other):
            assert all(not line or line.startswith((":", "retry")) for line in one.rest())  # up to a clean end
    service.stop()
    assert service.followers == 0


def test_an_invalid_position_is_a_problem(client: httpx.Client) -> None:
    for position in ("soon", "-1", str(2**63)):
        problem(client.get(PATH, headers={"Last-Event-ID": position}), 422, "invalid")


def test_the_number_of_clients_is_limited(deliveries: Deliveries) -> None:
    service = Service(deliveries.engine, most_followers=1)
    try:
        with following(service), service.client() as client:
            refusal = client.get(PATH)
            problem(refusal, 503, "busy")
            assert refusal.headers["retry-after"] == "5"
    finally:
        service.stop()
