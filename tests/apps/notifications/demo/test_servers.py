"""The demo on PostgreSQL and RabbitMQ; it leaves nothing on the servers."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest
from pika.exceptions import ChannelClosedByBroker

from tests.apps.notifications.demo.running import demo, verification
from tests.integration.rabbitmq.consumer import channel

DATABASES = "SELECT datname FROM pg_database WHERE datname LIKE 'notifications_demo_%'"


def test_the_demo_runs_on_postgresql_and_rabbitmq_and_cleans_up(
    tmp_path: Path, empty_postgres_url: str, rabbit: str
) -> None:
    done = demo(tmp_path, "--seconds", "3", "--json", DEMO_STORE=empty_postgres_url, DEMO_TRANSPORT=rabbit)
    found = verification(done)
    assert (done.returncode, found["ok"], found["failures"]) == (0, True, [])
    assert "PostgreSQL at 127.0.0.1" in found["path"]
    assert "RabbitMQ at 127.0.0.1" in found["path"]
    assert found["notifications"] > 0
    with psycopg.connect(empty_postgres_url) as connection:
        assert connection.execute(DATABASES).fetchall() == []
    with channel(rabbit) as broker, pytest.raises(ChannelClosedByBroker):
        broker.queue_declare("notification.restaurant", passive=True)


def test_existing_queues_are_rejected_and_kept(tmp_path: Path, rabbit: str) -> None:
    with channel(rabbit) as broker:
        broker.queue_declare("notification.admin", durable=True)
        done = demo(tmp_path, "--seconds", "1", DEMO_TRANSPORT=rabbit)
        assert (done.returncode, done.stderr.count("\n")) == (1, 1)
        assert "has the queue notification.admin already; use another virtual host" in done.stderr
        broker.queue_declare("notification.admin", passive=True)


@pytest.mark.parametrize(
    ("variable", "url", "expected"),
    [
        ("DEMO_STORE", "postgresql://app:canary@127.0.0.1:1/shop", "PostgreSQL at 127.0.0.1:1"),
        ("DEMO_TRANSPORT", "amqp://app:canary@127.0.0.1:1/", "RabbitMQ at 127.0.0.1:1"),
        ("DEMO_STORE", "mysql://app:canary@127.0.0.1/shop", "must begin with postgresql://"),
        ("DEMO_TRANSPORT", "http://app:canary@127.0.0.1/", "must begin with amqp://"),
    ],
)
def test_an_unavailable_or_unsuitable_server_is_an_error_of_one_line(
    tmp_path: Path, variable: str, url: str, expected: str
) -> None:
    done = demo(tmp_path, "--seconds", "1", **{variable: url})
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
    assert expected in done.stderr
    assert "canary" not in done.stdout + done.stderr
