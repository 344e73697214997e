"""`python -m apps.notifications deliver` as a person starts it."""

from __future__ import annotations

import signal
from pathlib import Path

from apps.notifications.words import Channel
from tests.apps.notifications.delivery.outside import BOUND, Gateway, ended, start
from tests.apps.notifications.delivery.post import Post
from tests.servers.waiting import wait_until


def test_it_says_what_it_lacks_before_it_starts(post: Post, tmp_path: Path) -> None:
    process = start(
        "apps.notifications",
        "deliver",
        folder=tmp_path,
        log=(log := tmp_path / "log"),
        PILLARBOX_STORE=post.url,
        NOTIFICATIONS_SMTP="smtp://app:canary@mail.example.org",
    )
    assert ended(process) == 1
    said = log.read_text()
    assert "NOTIFICATIONS_SMTP: smtp:// would send the password in the clear" in said
    assert "NOTIFICATIONS_FROM is not set" in said
    assert "canary" not in said
    assert "Traceback" not in said


def test_it_delivers_until_it_is_told_to_stop(post: Post, gateway: Gateway, tmp_path: Path) -> None:
    post.settle(1)
    [asked] = post.ask(1, Channel.PUSH)
    process = start(
        "apps.notifications",
        "deliver",
        folder=tmp_path,
        log=(log := tmp_path / "log"),
        PILLARBOX_STORE=post.url,
        NOTIFICATIONS_SMTP="smtp://127.0.0.1",
        NOTIFICATIONS_FROM="noreply@example.org",
        NOTIFICATIONS_PUSH_URL=f"{gateway.url}/push?key=canary".replace("//", "//app:canary@"),
        NOTIFICATIONS_SMS_URL=f"{gateway.url}/sms",
    )
    wait_until(lambda: process.must_run() and post.states()[asked] == "PUBLISHED", bound=BOUND, what="it is delivered")
    process.signal(signal.SIGTERM)
    assert ended(process) == 0
    assert f"INFO pillarbox.relay.events: delivered event: event_id={asked} " in log.read_text()
    assert gateway.received[0].path == "/push?key=canary"
    assert "canary" not in log.read_text()
