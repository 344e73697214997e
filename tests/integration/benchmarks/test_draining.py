"""A sample counts only if every event arrived, and says what it took."""

import pytest

from benchmarks.draining import Draining, Lost, Servers
from benchmarks.embedded import Embedded, drain
from benchmarks.events import FILL, payload
from benchmarks.latency import measure

EVENTS = 60


def test_a_backlog_is_drained_by_two_relays_and_every_event_is_found(servers: Servers) -> None:
    way = Draining(events=EVENTS, keys=10, relays=2, while_running=True, options={"history": True})
    sample = servers.drain(way, "classic")
    assert (sample.events, sample.repeats) == (EVENTS, 0)
    assert sample.python > 0
    assert sample.memory > 10


def test_a_missing_event_fails_the_sample(servers: Servers) -> None:
    one_twice = FILL.replace("lpad(g::text", "lpad((CASE g WHEN 7 THEN 8 ELSE g END)::text")
    with pytest.raises(Lost, match=f"1 of {EVENTS} events are missing, such as 7"):
        servers.drain(Draining(events=EVENTS, fill=one_twice), "classic")


def test_calls_are_counted(servers: Servers) -> None:
    assert servers.count(Draining(events=EVENTS), "classic").calls > 10


def test_the_raw_limit_counts_confirmed_messages(servers: Servers) -> None:
    assert servers.raw("quorum", 40, window=20) > 0


def test_latency_counts_from_the_commit_to_the_confirm(servers: Servers) -> None:
    found = measure(servers, 200, 0.1, kind="classic")
    assert found.events == 20
    assert 0 < found.p50 <= found.p99 <= found.longest


def test_handlers_receive_every_event_of_an_embedded_store() -> None:
    sample = drain(Embedded(events=EVENTS, history=True))
    assert (sample.events, sample.repeats) == (EVENTS, 0)


def test_events_have_the_documented_size() -> None:
    assert len(payload(7)) == 320
