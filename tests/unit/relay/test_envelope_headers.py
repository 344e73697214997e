"""The headers that consumers can rely on, for every body."""

from __future__ import annotations

import json

import pytest

from pillarbox.core.errors import PermanentError
from pillarbox.relay.envelope import outgoing_headers
from tests.unit.relay.messages import inserted_by_plain_sql, message

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
OTHER = "00-11111111111111111111111111111111-2222222222222222-00"


def test_the_fields_of_a_message_are_headers() -> None:
    full = message(schema_version=2, correlation_id="c-1", causation_id="evt-000", trace_id=TRACE)
    assert outgoing_headers(full) == {
        "eventType": "order.placed",
        "aggregateType": "ORDER",
        "aggregateId": "42",
        "occurredAt": "2026-11-03T12:30:45.123456Z",
        "schemaVersion": "2",
        "correlationId": "c-1",
        "causationId": "evt-000",
        "traceparent": TRACE,
    }


def test_missing_fields_have_no_header() -> None:
    assert outgoing_headers(inserted_by_plain_sql("order.placed", b"{}")) == {
        "eventType": "order.placed",
        "occurredAt": "2026-11-03T12:30:45.123456Z",
        "schemaVersion": "1",
    }


def test_message_fields_override_headers_of_the_producer() -> None:
    headers = outgoing_headers(message(headers_json='{"tenant":"größe","empty":"","eventType":"forged"}'))
    assert headers["tenant"] == "größe"
    assert headers["empty"] == ""
    assert headers["eventType"] == "order.placed"


def test_headers_other_than_text_become_json_text() -> None:
    headers = outgoing_headers(message(headers_json='{"n":7,"b":true,"x":null,"l":["ä"]}'))
    assert (headers["n"], headers["b"], headers["x"], headers["l"]) == ("7", "true", "null", '["ä"]')


def test_a_trace_header_of_the_producer_overrides_the_recorded_trace() -> None:
    given = json.dumps({"traceparent": OTHER, "tracestate": "a=1"})
    headers = outgoing_headers(message(headers_json=given, trace_id=TRACE))
    assert (headers["traceparent"], headers["tracestate"]) == (OTHER, "a=1")


@pytest.mark.parametrize(
    "wrong",
    [
        "trace-7",
        "",
        TRACE.upper(),
        TRACE + "-",
        "ff" + TRACE[2:],
        f"00-{'0' * 32}-b7ad6b7169203331-01",
        f"00-0af7651916cd43dd8448eb211c80319c-{'0' * 16}-01",
    ],
)
def test_an_invalid_traceparent_is_not_passed_on(wrong: str) -> None:
    assert "traceparent" not in outgoing_headers(message(trace_id=wrong))
    given = json.dumps({"traceparent": wrong})
    assert "traceparent" not in outgoing_headers(message(headers_json=given))
    assert outgoing_headers(message(headers_json=given, trace_id=TRACE))["traceparent"] == TRACE


def test_a_recorded_tracestate_is_sent_with_its_traceparent() -> None:
    headers = outgoing_headers(message(headers_json='{"tracestate": "shop=7"}', trace_id=TRACE))
    assert (headers["traceparent"], headers["tracestate"]) == (TRACE, "shop=7")


@pytest.mark.parametrize("wrong", ["shop", "", "Shop=7", "shop=1,shop=2", "größe=1"])
def test_an_invalid_tracestate_is_not_passed_on(wrong: str) -> None:
    headers = outgoing_headers(message(headers_json=json.dumps({"tracestate": wrong}), trace_id=TRACE))
    assert headers["traceparent"] == TRACE
    assert "tracestate" not in headers


@pytest.mark.parametrize("trace_id", [None, "trace-7"])
def test_a_tracestate_without_a_traceparent_is_not_passed_on(trace_id: str | None) -> None:
    headers = outgoing_headers(message(headers_json='{"tracestate": "shop=7"}', trace_id=trace_id))
    assert "tracestate" not in headers


@pytest.mark.parametrize(
    "value", ["7" * 5000, "1e999", "[" * 100_000 + "]" * 100_000], ids=["digits", "infinite", "deep"]
)
def test_invalid_headers_are_a_permanent_error(value: str) -> None:
    with pytest.raises(PermanentError, match="evt-001"):
        outgoing_headers(message(headers_json=f'{{"n":{value}}}'))
