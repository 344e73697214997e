"""The log lines of the guide at their levels."""

from __future__ import annotations

import logging
import re
from datetime import UTC, datetime, timedelta

import pytest

from apps.ingestion.logs import TRACE, log_relay
from apps.runtime.correlation import NONE, Stamp
from pillarbox.observations import BreakerChanged, EmptyFetch, EventDelivered, EventRetried, Sending
from tests.unit.relay.messages import message

RELAY = "apps.ingestion.relay"


@pytest.mark.parametrize("delay", [0.25, 10.0, 3600.0])
def test_the_log_line_of_a_retry_has_the_time_of_the_next_attempt(
    delay: float, caplog: pytest.LogCaptureFixture
) -> None:
    before = datetime.now(UTC)
    log_relay(
        EventRetried(
            relay="r", message=message(), destination="uploaded", error="away", attempt=1, delay=delay, counted=False
        )
    )
    failed, again = caplog.records
    assert (failed.levelname, again.levelname) == ("ERROR", "WARNING")
    [written] = re.findall(r"nextRetry=(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z)$", again.getMessage())
    wait = timedelta(seconds=delay)
    assert before + wait <= datetime.fromisoformat(written) <= datetime.now(UTC) + wait


def test_routine_steps_are_logged_below_info(caplog: pytest.LogCaptureFixture) -> None:
    for level, expected in ((logging.INFO, []), (logging.DEBUG, ["DEBUG"]), (TRACE, ["TRACE", "DEBUG"])):
        caplog.clear()
        with caplog.at_level(level, logger=RELAY):
            log_relay(EmptyFetch(relay="r"))
            log_relay(Sending(relay="r", destination="uploaded", messages=(message(),)))
        assert [record.levelname for record in caplog.records] == expected


@pytest.mark.parametrize(("given", "shown"), [("ticket-4711", "ticket-4711"), (None, NONE), ("two\nlines", NONE)])
def test_the_log_line_of_an_event_has_its_correlation_id(
    given: str | None, shown: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger=RELAY):
        sent = message()._replace(correlation_id=given)
        log_relay(EventDelivered(relay="r", message=sent, destination="uploaded", seconds=0.1))
    [record] = caplog.records
    Stamp().filter(record)
    assert vars(record)["correlation_id"] == shown


@pytest.mark.parametrize(
    ("state", "error", "level", "line"),
    [
        ("open", "no way", "WARNING", "Destination uploaded: circuit breaker open: no way"),
        ("closed", "", "INFO", "Destination uploaded: circuit breaker closed"),
    ],
)
def test_a_breaker_that_closes_is_logged_at_info(
    state: str, error: str, level: str, line: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger=RELAY):
        log_relay(BreakerChanged(relay="r", destination="uploaded", state=state, error=error))
    [record] = caplog.records
    assert (record.levelname, record.getMessage()) == (level, line)
