"""Headers of events fit into a request, and can be read back."""

import re

from hypothesis import given
from hypothesis import strategies as st

from pillarbox.transports.webhook import event_headers
from pillarbox.transports.webhook.headers import decoded, encoded, encoded_name, request_headers

TEXT = st.text(st.characters(exclude_categories=["Cs"]))


@given(TEXT)
def test_every_value_can_be_sent_and_read_back(text: str) -> None:
    written = encoded(text)
    assert re.fullmatch("[!-~]*", written)
    assert decoded(written) == text


@given(TEXT)
def test_every_name_is_a_token_and_can_be_read_back(name: str) -> None:
    written = encoded_name(name)
    assert re.fullmatch("[!#$%&'*+.^_`|~0-9A-Za-z-]*", written)
    assert decoded(written) == name


@given(st.dictionaries(TEXT.filter(lambda name: name.lower() not in ("traceparent", "tracestate")), TEXT))
def test_headers_of_an_event_are_read_back_under_their_names(headers: dict[str, str]) -> None:
    assert event_headers(request_headers(headers)) == {
        name: value for name, value in headers.items() if not ("ce-specversion" in headers and name.startswith("ce-"))
    }


def test_no_header_of_an_event_is_a_header_of_the_request() -> None:
    hostile = {"Host": "a", "content-length": "5", "Transfer-Encoding": "chunked", "Authorization": "b", "ce-id": "7"}
    assert list(request_headers(hostile)) == [f"pillarbox-{name}" for name in hostile]


def test_the_trace_context_keeps_its_names() -> None:
    trace = {"traceparent": "00-1-2-01", "tracestate": "a=b"}
    assert request_headers(trace) == trace == event_headers(trace)


def test_attributes_of_a_cloudevent_keep_their_names() -> None:
    assert request_headers({"ce-specversion": "1.0", "ce-id": "é 1", "eventType": "a"}) == {
        "ce-specversion": "1.0",
        "ce-id": "%C3%A9%201",
        "pillarbox-eventType": "a",
    }
