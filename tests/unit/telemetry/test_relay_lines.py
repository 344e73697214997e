"""Lines about a relay: its life, its batches, its lanes, and what it cannot reach."""

from __future__ import annotations

import pytest

from pillarbox.core.observations import (
    BatchFetched,
    BatchSettled,
    BreakerChanged,
    DestinationOverridden,
    EmptyFetch,
    LanesAcquired,
    LanesLost,
    LanesReleased,
    LeaseLost,
    Observation,
    OperatorRequestsApplied,
    Pruned,
    RelayDisabled,
    RelayStalled,
    RelayStallEnded,
    RelayStarted,
    RelayStateChanged,
    RelayStopped,
    StopRequested,
    StoreFailed,
    StoreRestored,
    TransportConnected,
    TransportFailed,
)
from tests.unit.telemetry.examples import OPENED, ORDER, lines, spoken

LINES: list[tuple[Observation, str, str]] = [
    (RelayStarted(relay="r", name="relay-a"), "INFO", "relay started: relay=r name=relay-a"),
    (RelayDisabled(relay="r"), "INFO", "relay switched off by its settings: relay=r"),
    (StopRequested(relay="r"), "INFO", "stop requested, draining: relay=r"),
    (RelayStopped(relay="r", drained=True), "INFO", "drained and stopped: relay=r"),
    (
        RelayStopped(relay="r", drained=False),
        "WARNING",
        "stopped with messages in flight, which will be sent again: relay=r",
    ),
    (
        RelayStateChanged(relay="r", lanes=64, in_flight=12, breakers={}, rates={}),
        "TRACE",
        "holds 64 lanes, 12 messages: relay=r",
    ),
    (
        RelayStalled(relay="r", stage="settle", reason="the store refuses results", seconds=31.5),
        "ERROR",
        "stalled, no progress for 32 s: relay=r stage=settle reason=the store refuses results",
    ),
    (
        RelayStallEnded(relay="r", stage="settle", seconds=40.0),
        "INFO",
        "no longer stalled after 40 s: relay=r stage=settle",
    ),
    (EmptyFetch(relay="r"), "TRACE", "found nothing pending: relay=r"),
    (
        BatchFetched(relay="r", messages=(ORDER, ORDER), seconds=0.002),
        "INFO",
        "found 2 pending: relay=r seconds=0.002",
    ),
    (
        BatchSettled(relay="r", delivered=497, retried=2, dead=1, duplicates=3, seconds=0.01),
        "INFO",
        "batch completed: 497 delivered, 3 failed (2 to retry, 1 given up), 3 duplicates: relay=r seconds=0.010",
    ),
    (LanesAcquired(relay="r", lanes=(1,)), "INFO", "took 1 lane: relay=r lanes=[1]"),
    (LanesAcquired(relay="r", lanes=(1, 2)), "INFO", "took 2 lanes: relay=r lanes=[1, 2]"),
    (
        LanesAcquired(relay="r", lanes=(1, 2), crashed=(2,)),
        "WARNING",
        "took 2 lanes: relay=r lanes=[1, 2]; from owners that did not leave: [2]",
    ),
    (LanesReleased(relay="r", lanes=(1, 2)), "INFO", "gave back 2 lanes: relay=r lanes=[1, 2]"),
    (LanesLost(relay="r", lanes=(1, 2)), "WARNING", "somebody else has taken 2 lanes: relay=r lanes=[1, 2]"),
    (
        LeaseLost(relay="r", reason="not renewed in time"),
        "WARNING",
        "lease lost, dropped everything in hand: relay=r reason=not renewed in time",
    ),
    (
        StoreFailed(relay="r", error="connection refused", delay=0.4),
        "WARNING",
        "store failed, next try in 0.40 s: relay=r error=connection refused",
    ),
    (StoreRestored(relay="r", seconds=3.5), "INFO", "store answers again after 3.5 s: relay=r"),
    (
        TransportFailed(relay="r", transport="rabbit", error="refused", delay=0.4),
        "WARNING",
        "transport unavailable, next attempt in 0.40 s: transport=rabbit relay=r error=refused",
    ),
    (TransportConnected(relay="r", transport="rabbit"), "INFO", "transport connected: transport=rabbit relay=r"),
    (
        TransportConnected(relay="r", transport="rabbit", seconds=12.5),
        "INFO",
        "transport reconnected after 12.5 s: transport=rabbit relay=r",
    ),
    (
        BreakerChanged(relay="r", destination="orders", state="closed"),
        "INFO",
        "breaker closed: destination=orders relay=r",
    ),
    (Pruned(relay="r", count=12), "INFO", "retention dropped 12: relay=r"),
    (
        DestinationOverridden(relay="r", destination="orders", paused=True, breaker="open", rate_limit=0.5),
        "INFO",
        "people want of a destination: paused, breaker held open, at most 0.5/s: destination=orders relay=r",
    ),
    (
        DestinationOverridden(relay="r", destination="*", paused=False, breaker=None, rate_limit=None),
        "INFO",
        "people want of a destination: nothing more: destination=* relay=r",
    ),
    (OperatorRequestsApplied(relay="r", count=2), "INFO", "carried out 2 requests: relay=r"),
]


@pytest.mark.parametrize(("observation", "level", "text"), LINES, ids=[text for _, _, text in LINES])
def test_it_is_one_line(observation: Observation, level: str, text: str) -> None:
    assert spoken(observation) == [("pillarbox.relay", level, text)]


def test_an_outage_is_one_warning_when_it_begins_and_one_for_each_failed_probe() -> None:
    probe = BreakerChanged(
        relay="r", destination="orders", state="open", error="UnavailableError: timeout", next_try=1.5
    )
    begin = "breaker open: destination=orders relay=r"
    assert spoken(OPENED, probe) == [
        ("pillarbox.relay", "WARNING", f"{begin} next_try_at=2026-11-03T12:01:00.000000Z error=UnavailableError: gone"),
        (
            "pillarbox.relay",
            "WARNING",
            f"{begin} next_try_at=2026-11-03T12:00:01.500000Z error=UnavailableError: timeout",
        ),
    ]


def test_a_breaker_that_a_person_holds_closed_although_it_fails_is_a_warning() -> None:
    held = BreakerChanged(relay="r", destination="orders", state="closed", error="UnavailableError: gone", next_try=1.5)
    [record] = lines(held)
    assert (record.levelname, "error=UnavailableError: gone" in record.getMessage()) == ("WARNING", True)


def test_a_probe_that_failed_and_may_be_repeated_at_once_is_a_warning_too() -> None:
    [record] = lines(BreakerChanged(relay="r", destination="orders", state="half-open", error="UnavailableError: gone"))
    assert record.levelname == "WARNING"


def test_numbers_are_numbers_on_the_record() -> None:
    [record] = lines(BatchSettled(relay="r", delivered=497, retried=2, dead=1, duplicates=3, seconds=0.01))
    found = vars(record)
    assert (found["delivered"], found["failed"], found["retried"], found["dead"]) == (497, 3, 2, 1)


def test_lanes_are_a_list_on_the_record() -> None:
    [record] = lines(LanesAcquired(relay="r", lanes=(1, 2), crashed=(2,)))
    assert (vars(record)["lanes"], vars(record)["crashed"]) == ([1, 2], [2])
