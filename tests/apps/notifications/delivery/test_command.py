"""`python -m apps.notifications deliver` as a process."""

from __future__ import annotations

import signal
from pathlib import Path

from apps.notifications.domain import Channel
from tests.apps.notifications.delivery.delivery_database import Deliveries
from tests.apps.notifications.delivery.servers import BOUND, Gateway, ended, start
from tests.servers.waiting import wait_until


def test_deliver_reports_all_missing_and_invalid_variables(deliveries: Deliveries, tmp_path: Path) -> None:
    process = start(
        "apps.notifications",
        "deliver",
        folder=tmp_path,
        log=(log := tmp_path / "log"),
        PILLARBOX_STORE=deliveries.url,
        NOTIFICATIONS_SMTP="smtp://app:canary@mail.example.org",
    )
    assert ended(process) == 1
    output = log.read_text()
    assert "NOTIFICATIONS_SMTP: smtp:// would send the password in the clear" in output
    assert "NOTIFICATIONS_FROM is not set" in output
    assert "canary" not in output
    assert "Traceback" not in output


def test_deliver_runs_until_sigterm(deliveries: Deliveries, gateway: Gateway, tmp_path: Path) -> None:
    deliveries.add_users(1)
    [requested] = deliveries.request(1, Channel.PUSH)
    process = start(
        "apps.notifications",
        "--verbose",
        "deliver",
        folder=tmp_path,
        log=(log := tmp_path / "log"),
        PILLARBOX_STORE=deliveries.url,
        NOTIFICATIONS_SMTP="smtp://127.0.0.1",
        NOTIFICATIONS_FROM="noreply@example.org",
        NOTIFICATIONS_PUSH_URL=f"{gateway.url}/push?key=canary".replace("//", "//app:canary@"),
        NOTIFICATIONS_SMS_URL=f"{gateway.url}/sms",
    )
    wait_until(
        lambda: process.must_run() and deliveries.states()[requested] == "PUBLISHED",
        bound=BOUND,
        what="it is delivered",
    )
    process.signal(signal.SIGTERM)
    assert ended(process) == 0
    assert f"INFO pillarbox.relay.events: delivered event: event_id={requested} " in log.read_text()
    assert gateway.received[0].path == "/push?key=canary"
    assert "canary" not in log.read_text()
