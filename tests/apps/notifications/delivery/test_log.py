"""The delivery log: one row per notification, and for one user in the order of the commits."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from sqlalchemy import text

from apps.notifications.delivery.log import DeliveryLog
from apps.notifications.delivery.request import DeliveryRequest
from apps.notifications.domain import Audience, Channel
from tests.apps.notifications.delivery.delivery_database import Deliveries
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


def test_the_log_keeps_the_first_row_of_a_delivery(database: str) -> None:
    with Deliveries.of(database) as deliveries:
        deliveries.add_users(1)
        log = DeliveryLog(deliveries.engine)
        assert log.recipient_of(request(1)) is not None
        log.write(request(1), attempt=2)
        log.write(request(1), attempt=3)
        assert log.recipient_of(request(1)) is None
        assert deliveries.rows(text("SELECT event_id, attempt FROM notification_delivery")) == [("d1", 2)]


def test_feed_positions_of_a_user_rise_in_commit_order(postgres_database: str) -> None:
    """Otherwise a follower that saw the later row would miss the earlier one."""
    with Deliveries.of(postgres_database) as deliveries, ThreadPoolExecutor(1) as another:
        deliveries.add_users(1)
        with deliveries.engine.begin() as earlier:
            earlier.execute(text("SELECT 1 FROM recipient WHERE user_id = 1 FOR UPDATE"))
            later = another.submit(DeliveryLog(deliveries.engine).write, request(2), attempt=1)
            wait_until(lambda: deliveries.rows(text(WAITING)) == [(1,)], bound=90, what="the later write waits")
            earlier.execute(
                text(
                    "INSERT INTO notification_delivery (audience, notification_id, user_id, channel, event_id, attempt,"
                    " delivered_at) VALUES ('CUSTOMER', 1, 1, 'IN_APP', 'd1', 1, now())"
                )
            )
        later.result(30)
        assert deliveries.rows(text("SELECT event_id FROM notification_delivery ORDER BY id")) == [("d1",), ("d2",)]
