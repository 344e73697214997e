"""A relay killed after a message went out and before anybody noted it: it goes out again, and is known by its id."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from apps.notifications.words import Channel
from tests.apps.notifications.delivery.outside import BOUND, Gateway, Hook, MailServer, ended, start
from tests.apps.notifications.delivery.post import Post
from tests.servers.processes import Started
from tests.servers.waiting import wait_until

Start = Callable[[], Started]


@pytest.fixture
def deliver(post: Post, mail: MailServer, gateway: Gateway, tmp_path: Path) -> Iterator[Start]:
    """Starts relays of deliveries that are gone when the test ends."""
    started: list[Started] = []

    def start_one() -> Started:
        process = start(
            "tests.apps.notifications.delivery.deliver_process",
            folder=tmp_path,
            log=tmp_path / "deliver.log",
            DATABASE=post.url,
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


def wait_until_delivered(post: Post) -> None:
    wait_until(lambda: set(post.states().values()) == {"PUBLISHED"}, bound=BOUND, what="it is delivered")


def test_a_mail_that_goes_out_twice_has_one_message_id(post: Post, mail: MailServer, deliver: Start) -> None:
    post.settle(1)
    victim = deliver()
    mail.kill_client_after_its_next_mail(victim.pid)
    [asked] = post.ask(1, Channel.EMAIL)
    assert ended(victim) == -signal.SIGKILL
    assert len(mail.mails) == 1  # it went out …
    assert (post.delivered(), post.states()) == (set(), {asked: "PENDING"})  # … and nobody noted it
    deliver()
    wait_until_delivered(post)
    assert [got.id for got in mail.mails] == [f"<{asked}@example.org>"] * 2
    assert post.delivered() == {(1, "EMAIL")}


def test_a_push_that_goes_out_twice_has_one_idempotency_key(post: Post, gateway: Gateway, deliver: Start) -> None:
    known: set[str | None] = set()

    def answer(hook: Hook) -> int:
        """As a gateway that keeps its promise: the second time it says that it knows the key."""
        if hook.key in known:
            return 409
        known.add(hook.key)
        os.kill(victim.pid, signal.SIGKILL)
        return 202

    gateway.answer = answer
    post.settle(1)
    victim = deliver()
    [asked] = post.ask(1, Channel.PUSH)
    assert ended(victim) == -signal.SIGKILL
    assert (post.delivered(), post.states()) == (set(), {asked: "PENDING"})
    deliver()
    wait_until_delivered(post)
    assert [hook.key for hook in gateway.received] == [asked, asked]
    assert post.delivered() == {(1, "PUSH")}


def test_told_to_stop_it_finishes_what_it_has_in_hand(post: Post, gateway: Gateway, deliver: Start) -> None:
    def answer(_: Hook) -> int:
        process.process.send_signal(signal.SIGTERM)
        wait_until(lambda: "told to stop" in process.log.read_text(), bound=BOUND, what="the stop is heard")
        return 202

    gateway.answer = answer
    post.settle(1)
    process = deliver()
    post.ask(1, Channel.SMS)
    assert ended(process) == 0
    assert (post.delivered(), set(post.states().values())) == ({(1, "SMS")}, {"PUBLISHED"})
    assert len(gateway.received) == 1
