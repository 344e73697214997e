"""Log lines of single events: event, attempt, error and next attempt."""

from __future__ import annotations

import logging
from dataclasses import replace

from pillarbox.core.observations import BatchDelivered
from pillarbox.telemetry.logs import RelayLog
from tests.unit.telemetry.examples import (
    BLOCKS,
    DEAD_LETTERED,
    DELIVERED,
    NACKED,
    ORDER,
    RETRIED,
    SENDING,
    SKIPPED,
    kept,
    lines,
    logged,
)

LOGGER = "pillarbox.relay.events"
WHICH = "event_id=evt-7 aggregate_id=42 destination=orders"


def test_a_delivery_is_logged_at_info() -> None:
    assert logged(DELIVERED) == [(LOGGER, "INFO", f"delivered event: {WHICH} attempt=3 seconds=0.250")]


def test_each_delivery_of_a_batch_is_logged_at_info() -> None:
    with kept(logging.INFO) as records:
        RelayLog().delivered(
            BatchDelivered(relay="r", destination="orders", messages=(ORDER, ORDER._replace(deferrals=5)), seconds=0.25)
        )
    assert [record.getMessage() for record in records] == [
        f"delivered event: {WHICH} attempt=3 seconds=0.250",
        f"delivered event: {WHICH} attempt=7 seconds=0.250",
    ]


def test_a_failed_send_is_an_error_and_its_retry_a_warning() -> None:
    assert logged(RETRIED) == [
        (LOGGER, "ERROR", f"failed to send event: {WHICH} attempt=3 error=RejectedError: no"),
        (LOGGER, "WARNING", f"will retry event: {WHICH} attempt=3 next_retry_at=2026-11-03T12:01:30.000000Z"),
    ]


def test_a_deferral_is_one_warning() -> None:
    text = f"will retry event: {WHICH} attempt=3 next_retry_at=2026-11-03T12:01:30.000000Z error=NackedError: full"
    assert logged(NACKED) == [(LOGGER, "WARNING", text)]


def test_a_duplicate_found_in_the_ledger_is_logged_at_info() -> None:
    assert logged(SKIPPED) == [
        (LOGGER, "INFO", f"skipped event, already sent according to the ledger: {WHICH} attempt=3")
    ]


def test_a_dead_letter_is_an_error() -> None:
    assert logged(DEAD_LETTERED) == [
        (LOGGER, "ERROR", f"dead-lettered event: {WHICH} attempt=11 error=RejectedError: no")
    ]


def test_a_dead_letter_that_blocks_its_key_is_marked() -> None:
    [(_, level, text)] = logged(BLOCKS)
    assert level == "ERROR"
    assert text.startswith("dead-lettered event, its key is blocked: event_id=evt-7")


def test_each_event_about_to_be_sent_is_logged_at_debug() -> None:
    assert logged(SENDING) == [
        (LOGGER, "DEBUG", f"about to send event: {WHICH} attempt=3 event_type=order.placed bytes=9"),
        (
            LOGGER,
            "DEBUG",
            "about to send event: event_id=evt-8 aggregate_id=None destination=orders attempt=1 "
            "event_type=order.placed bytes=9",
        ),
    ]


def test_the_fields_of_the_text_are_attributes_of_the_record() -> None:
    for record in lines(RETRIED):
        found = vars(record)
        assert found["relay"] == "r"
        assert found["event_id"] == "evt-7"
        assert found["event_type"] == "order.placed"
        assert found["aggregate_id"] == "42"
        assert found["destination"] == "orders"
        assert found["attempt"] == 3
        assert found["next_retry_at"] == "2026-11-03T12:01:30.000000Z"
        assert found["error"] == "RejectedError: no"


def test_line_ends_and_terminal_codes_are_escaped_in_text_and_record() -> None:
    order = ORDER._replace(event_id="evt\n2026 INFO all is well")
    forged = replace(RETRIED, message=order, error="\x1b[2Jgone\u2028\ud800\u202e")
    failed, _ = lines(forged)
    assert "event_id=evt\\n2026 INFO all is well " in failed.getMessage()
    assert failed.getMessage().endswith("error=\\x1b[2Jgone\\u2028\\ud800\\u202e")
    assert vars(failed)["event_id"] == "evt\\n2026 INFO all is well"
    assert vars(failed)["error"] == "\\x1b[2Jgone\\u2028\\ud800\\u202e"


def test_unicode_text_stays_unchanged() -> None:
    [record] = lines(replace(DEAD_LETTERED, destination="größe", error="失敗"))
    assert "destination=größe attempt=11 error=失敗" in record.getMessage()
