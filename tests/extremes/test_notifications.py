"""Every notification to a relay on PostgreSQL is lost on its way: the relay finds the events by its poll."""

from __future__ import annotations

from contextlib import closing

import pytest

from tests.extremes.conftest import MakeScene
from tests.extremes.linked import port_of
from tests.extremes.links import FaultyProxy, Loss, is_notification, postgres_message
from tests.extremes.receiving import from_queue
from tests.servers.rabbitmq import RabbitMQServer

EVENTS = 2_000
ALL = 1_000_000
POLL = 2.0
ROOM = 5.0
"""Seconds from the poll to the commit of the settlement; generous, for a busy machine."""
WAITS = """
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY waited), percentile_cont(0.99) WITHIN GROUP (ORDER BY waited)
FROM (SELECT extract(epoch FROM published_at - recorded_at) AS waited FROM outbox_history) h
"""


@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_events_wait_at_most_for_the_poll_if_notifications_are_lost(
    make_scene: MakeScene, postgres_url: str, rabbitmq_server: RabbitMQServer, adaptive: str
) -> None:
    """An adaptive relay polls more often after events. By the clock of the database, from record to settlement."""
    loss = Loss(size=postgres_message, chosen=is_notification, left=ALL)
    with closing(FaultyProxy(port_of(postgres_url), loss)) as link:
        store = postgres_url.replace(f":{port_of(postgres_url)}/", f":{link.port}/")
        scene = make_scene(store=postgres_url, transport=rabbitmq_server.url(), STORE=store)
        relay = scene.start({"RELAY__POLL_INTERVAL": f"{POLL:g}s", "RELAY__ADAPTIVE": adaptive})
        with scene.under_load():
            scene.wait_delivered(EVENTS)
        scene.wait_drained()
        assert loss.left < ALL, "no notification was lost"
        assert not relay.said("store failed")
        scene.stop()
    [(median, most)] = scene.query(WAITS)
    print(f"waited {median:.2f} s, 99 % at most {most:.2f} s; lost {ALL - loss.left} notifications")
    assert most > POLL / 4 or adaptive == "true"
    assert most <= POLL + ROOM
    assert scene.attempts() == 0
    scene.assert_sound(from_queue(rabbitmq_server.url(), scene.event_type))
