"""Which texts are a W3C trace context, and how a caused event inherits that of its cause."""

from __future__ import annotations

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.trace import TraceState

from pillarbox import Event
from pillarbox.core.event import MAX_HEADERS, is_tracestate

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
CAUSE = Event("order.placed", {}, trace_id=PARENT, headers={"tracestate": "shop=7", "tenant": "acme"})


@pytest.mark.parametrize(
    "text",
    [
        "a=1",
        "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE",
        "a=1 ,\tb=2",
        "a=1,,b=2",
        "0tenant@system=x",
        "a=" + "x" * 256,
        ",".join(f"k{number}=v" for number in range(32)),
        "a= 1",
        "a-_*/9=!~",
    ],
)
def test_a_list_of_different_members_is_a_tracestate(text: str) -> None:
    assert is_tracestate(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        ",",
        "a",
        "a=",
        "A=1",
        "a=1,a=2",
        "a=ü",
        "a=1=2",
        "a=1\n",
        "a=" + "x" * 257,
        "k" * 257 + "=v",
        "t@" + "s" * 15 + "=v",
        ",".join(f"k{number}=v" for number in range(33)),
        "a=1," + " " * 8192,
    ],
)
def test_other_texts_are_not_a_tracestate(text: str) -> None:
    assert not is_tracestate(text)


@given(
    st.lists(
        st.from_regex("[a-z0-9_*/@-]{0,6}=?[ -~]{0,4}", fullmatch=True) | st.text(st.characters(codec="utf-8")),
        max_size=4,
    ).map(",".join)
)
def test_the_library_of_opentelemetry_reads_the_same_texts(text: str) -> None:
    logging.getLogger("opentelemetry.trace.span").setLevel(logging.ERROR)  # it logs each text that it cannot read
    assert is_tracestate(text) == bool(TraceState.from_header([text]))


def test_a_caused_event_has_the_tracestate_of_its_cause() -> None:
    caused = Event("invoice.sent", {}, headers={"colour": "red"}).caused_by(CAUSE)
    assert caused.trace_id == PARENT
    assert caused.headers == {"colour": "red", "tracestate": "shop=7"}


@pytest.mark.parametrize(
    "own",
    [
        Event("invoice.sent", {}, trace_id="mine"),
        Event("invoice.sent", {}, headers={"traceparent": PARENT}),
        Event("invoice.sent", {}, headers={"tracestate": "mine=1"}),
        Event("invoice.sent", {}, headers={f"h{number}": "" for number in range(MAX_HEADERS)}),
    ],
    ids=["trace id", "traceparent", "tracestate", "no room"],
)
def test_headers_of_an_event_with_its_own_trace_context_stay(own: Event) -> None:
    assert own.caused_by(CAUSE).headers == own.headers


def test_an_invalid_tracestate_is_not_inherited() -> None:
    cause = Event("order.placed", {}, trace_id=PARENT, headers={"tracestate": "not one"})
    assert Event("invoice.sent", {}).caused_by(cause).headers == {}


def test_a_tracestate_without_a_trace_is_not_inherited() -> None:
    cause = Event("order.placed", {}, headers={"tracestate": "shop=7"})
    assert Event("invoice.sent", {}).caused_by(cause).headers == {}
