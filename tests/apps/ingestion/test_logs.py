"""The lines of the guide, at the levels of the guide."""

from __future__ import annotations

import logging
import re
from datetime import UTC, datetime, timedelta

import pytest

from apps.ingestion.logs import TRACE, log_relay
from pillarbox.observations import EventRetried, LookedInVain, Sending
from tests.unit.relay.messages import message

RELAY = "apps.ingestion.relay"


@pytest.mark.parametrize("delay", [0.25, 10.0, 3600.0])
def test_the_next_retry_is_when_it_will_be(delay: float, caplog: pytest.LogCaptureFixture) -> None:
    before = datetime.now(UTC)
    log_relay(
        EventRetried(
            relay="r", message=message(), destination="uploaded", error="away", attempt=1, delay=delay, charged=False
        )
    )
    failed, again = caplog.records
    assert (failed.levelname, again.levelname) == ("ERROR", "WARNING")
    [written] = re.findall(r"nextRetry=(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z)$", again.getMessage())
    wait = timedelta(seconds=delay)
    assert before + wait <= datetime.fromisoformat(written) <= datetime.now(UTC) + wait


def test_what_is_normal_is_told_on_request_only(caplog: pytest.LogCaptureFixture) -> None:
    for level, expected in ((logging.INFO, []), (logging.DEBUG, ["DEBUG"]), (TRACE, ["TRACE", "DEBUG"])):
        caplog.clear()
        with caplog.at_level(level, logger=RELAY):
            log_relay(LookedInVain(relay="r"))
            log_relay(Sending(relay="r", destination="uploaded", messages=(message(),)))
        assert [record.levelname for record in caplog.records] == expected
