"""The log of deliveries: once per notification, and for one user in the order of the commits."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from sqlalchemy import text

from apps.notifications.delivery.log import DeliveryLog
from apps.notifications.delivery.request import DeliveryRequest
from apps.notifications.words import Audience, Channel
from tests.apps.notifications.delivery.post import Post
from tests.servers.waiting import wait_until

WAITING = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


def request(notification_id: int) -> DeliveryRequest:
    return DeliveryRequest(
        delivery_id=f"d{notification_id}",
        channel=Channel.IN_APP,
        audience=Audience.CUSTOMER,
        notification_id=notification_id,
        user_id=1,
        event_type="ORDER_CREATED",
        title="",
        body="",
    )


def test_a_delivery_is_noted_once_with_its_first_attempt(database: str) -> None:
    with Post.of(database) as post:
        post.settle(1)
        log = DeliveryLog(post.engine)
        assert log.recipient_of(request(1)) is not None
        log.write(request(1), attempt=2)
        log.write(request(1), attempt=3)
        assert log.recipient_of(request(1)) is None
        assert post.rows(text("SELECT event_id, attempt FROM notification_delivery")) == [("d1", 2)]


def test_a_place_in_a_users_feed_is_drawn_after_those_before_it_are_committed(postgres_database: str) -> None:
    """Else a follower who saw the later one would never ask for the earlier."""
    with Post.of(postgres_database) as post, ThreadPoolExecutor(1) as another:
        post.settle(1)
        with post.engine.begin() as earlier:
            earlier.execute(text("SELECT 1 FROM recipient WHERE user_id = 1 FOR UPDATE"))
            later = another.submit(DeliveryLog(post.engine).write, request(2), attempt=1)
            wait_until(lambda: post.rows(text(WAITING)) == [(1,)], bound=90, what="the later one waits")
            earlier.execute(
                text(
                    "INSERT INTO notification_delivery (audience, notification_id, user_id, channel, event_id, attempt,"
                    " delivered_at) VALUES ('CUSTOMER', 1, 1, 'IN_APP', 'd1', 1, now())"
                )
            )
        later.result(30)
        assert post.rows(text("SELECT event_id FROM notification_delivery ORDER BY id")) == [("d1",), ("d2",)]
