"""A relay that crashes between sending a message and writing the log sends it again with the same id."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from apps.notifications.domain import Channel
from tests.apps.notifications.delivery.delivery_database import Deliveries
from tests.apps.notifications.delivery.servers import BOUND, Gateway, Hook, MailServer, ended, start
from tests.servers.processes import Started
from tests.servers.waiting import wait_until

Start = Callable[[], Started]


@pytest.fixture
def deliver(deliveries: Deliveries, mail: MailServer, gateway: Gateway, tmp_path: Path) -> Iterator[Start]:
    """Starts relays of deliveries; kills them at the end of the test."""
    started: list[Started] = []

    def start_one() -> Started:
        process = start(
            "tests.apps.notifications.delivery.deliver_process",
            folder=tmp_path,
            log=tmp_path / "deliver.log",
            DATABASE=deliveries.url,
            NOTIFICATIONS_SMTP=f"smtp://127.0.0.1:{mail.port}",
            NOTIFICATIONS_FROM="noreply@example.org",
            NOTIFICATIONS_PUSH_URL=f"{gateway.url}/push",
            NOTIFICATIONS_SMS_URL=f"{gateway.url}/sms",
        )
        started.append(process)
        return process

    yield start_one
    for process in started:
        process.process.kill()
        ended(process)


def wait_until_delivered(deliveries: Deliveries) -> None:
    wait_until(lambda: set(deliveries.states().values()) == {"PUBLISHED"}, bound=BOUND, what="it is delivered")


def test_a_mail_sent_twice_has_one_message_id(deliveries: Deliveries, mail: MailServer, deliver: Start) -> None:
    deliveries.add_users(1)
    victim = deliver()
    mail.kill_client_after_its_next_mail(victim.pid)
    [requested] = deliveries.request(1, Channel.EMAIL)
    assert ended(victim) == -signal.SIGKILL
    assert len(mail.mails) == 1  # sent …
    assert (deliveries.delivered(), deliveries.states()) == (set(), {requested: "PENDING"})  # … and not logged
    deliver()
    wait_until_delivered(deliveries)
    assert [got.id for got in mail.mails] == [f"<{requested}@example.org>"] * 2
    assert deliveries.delivered() == {(1, "EMAIL")}


def test_a_push_sent_twice_has_one_idempotency_key(deliveries: Deliveries, gateway: Gateway, deliver: Start) -> None:
    known: set[str | None] = set()

    def answer(hook: Hook) -> int:
        """An idempotent gateway: it returns 409 for a known key."""
        if hook.key in known:
            return 409
        known.add(hook.key)
        os.kill(victim.pid, signal.SIGKILL)
        return 202

    gateway.answer = answer
    deliveries.add_users(1)
    victim = deliver()
    [requested] = deliveries.request(1, Channel.PUSH)
    assert ended(victim) == -signal.SIGKILL
    assert (deliveries.delivered(), deliveries.states()) == (set(), {requested: "PENDING"})
    deliver()
    wait_until_delivered(deliveries)
    assert [hook.key for hook in gateway.received] == [requested, requested]
    assert deliveries.delivered() == {(1, "PUSH")}


def test_on_sigterm_the_relay_finishes_deliveries_in_flight(
    deliveries: Deliveries, gateway: Gateway, deliver: Start
) -> None:
    def answer(_: Hook) -> int:
        process.process.send_signal(signal.SIGTERM)
        wait_until(lambda: "stop requested" in process.log.read_text(), bound=BOUND, what="the stop request")
        return 202

    gateway.answer = answer
    deliveries.add_users(1)
    process = deliver()
    deliveries.request(1, Channel.SMS)
    assert ended(process) == 0
    assert (deliveries.delivered(), set(deliveries.states().values())) == ({(1, "SMS")}, {"PUBLISHED"})
    assert len(gateway.received) == 1
