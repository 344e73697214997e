"""Log lines of a consumer: level, logger, and the event id."""

import logging
from typing import get_args

import pytest

from pillarbox.inbox.observations import (
    AckFailed,
    ConsumerObservation,
    ConsumerStarted,
    ConsumerStopped,
    ConsumerStopRequested,
    DuplicateSkipped,
    EventProcessed,
    HandlingFailed,
    MessageDeadLettered,
    SourceFailed,
    SourceRestored,
    StatisticsFailed,
)
from pillarbox.telemetry.consumer_logs import ConsumerLog

EVENT = {"consumer": "billing", "event_id": "e1", "event_type": "order.placed"}
LINES: list[tuple[ConsumerObservation, str, str, str]] = [
    (ConsumerStarted(consumer="billing"), "INFO", "", "consumer started"),
    (ConsumerStopRequested(consumer="billing"), "INFO", "", "draining"),
    (ConsumerStopped(consumer="billing", drained=True), "INFO", "", "drained and stopped"),
    (ConsumerStopped(consumer="billing", drained=False), "WARNING", "", "which the broker redelivers"),
    (SourceFailed(consumer="billing", error="no way", delay=0.1), "WARNING", "", "no way"),
    (SourceRestored(consumer="billing", seconds=21.8), "INFO", "", "source reconnected after 21.8 s"),
    (StatisticsFailed(consumer="billing", error="no table"), "WARNING", "", "will retry"),
    (EventProcessed(**EVENT, attempt=1, seconds=0.5), "INFO", ".events", "processed event"),
    (DuplicateSkipped(**EVENT), "WARNING", ".events", "already processed, skipping"),
    (HandlingFailed(**EVENT, attempt=2, error="oh", delay=5, counted=True), "ERROR", ".events", "error=oh"),
    (MessageDeadLettered(**EVENT, attempt=7, error="oh"), "ERROR", ".events", "dead-lettered event"),
    (AckFailed(**EVENT, error="cut"), "WARNING", ".events", "the broker redelivers"),
]


@pytest.mark.parametrize(("reported", "level", "logger", "words"), LINES, ids=lambda value: type(value).__name__)
def test_each_observation_has_its_line(
    caplog: pytest.LogCaptureFixture, reported: ConsumerObservation, level: str, logger: str, words: str
) -> None:
    with caplog.at_level(logging.DEBUG, "pillarbox.consumer"):
        ConsumerLog()(reported)
    [record] = caplog.records
    assert (record.levelname, record.name) == (level, f"pillarbox.consumer{logger}")
    assert words in record.getMessage()
    assert "consumer=billing" in record.getMessage()
    if logger:
        assert "event_id=e1" in record.getMessage()
        assert vars(record)["event_id"] == "e1"


def test_every_kind_has_a_line() -> None:
    assert {type(reported) for reported, *_ in LINES} == set(get_args(ConsumerObservation))


def test_a_line_stays_one_line(caplog: pytest.LogCaptureFixture) -> None:
    ConsumerLog()(MessageDeadLettered(consumer="billing", event_id="a\nb", event_type="t", attempt=1, error="x\r\ny"))
    assert "\n" not in caplog.records[0].getMessage()
