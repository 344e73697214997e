"""Log lines of a relay: lifecycle, batches, lanes and failures."""

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
    OperatorRequestsExecuted,
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
from tests.unit.telemetry.examples import OPENED, ORDER, lines, logged

LINES: list[tuple[Observation, str, str]] = [
    (RelayStarted(relay="r", name="relay-a"), "INFO", "relay started: relay=r name=relay-a"),
    (RelayDisabled(relay="r"), "INFO", "relay disabled by its settings: relay=r"),
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
        "owns 64 lanes, 12 in flight: relay=r",
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
    (EmptyFetch(relay="r"), "TRACE", "empty fetch: relay=r"),
    (
        BatchFetched(relay="r", messages=(ORDER, ORDER), seconds=0.002),
        "INFO",
        "fetched 2 pending: relay=r seconds=0.002",
    ),
    (
        BatchSettled(relay="r", delivered=497, retried=2, dead=1, duplicates=3, seconds=0.01),
        "INFO",
        "batch completed: 497 delivered, 3 failed (2 to retry, 1 dead-lettered), 3 duplicates: relay=r seconds=0.010",
    ),
    (LanesAcquired(relay="r", lanes=(1,)), "INFO", "acquired 1 lane: relay=r lanes=[1]"),
    (LanesAcquired(relay="r", lanes=(1, 2)), "INFO", "acquired 2 lanes: relay=r lanes=[1, 2]"),
    (
        LanesAcquired(relay="r", lanes=(1, 2), crashed=(2,)),
        "WARNING",
        "acquired 2 lanes (1 from a crashed relay): relay=r lanes=[1, 2] crashed=[2]",
    ),
    (LanesReleased(relay="r", lanes=(1, 2)), "INFO", "released 2 lanes: relay=r lanes=[1, 2]"),
    (LanesLost(relay="r", lanes=(1, 2)), "WARNING", "another relay owns 2 lanes: relay=r lanes=[1, 2]"),
    (
        LeaseLost(relay="r", reason="not renewed in time"),
        "WARNING",
        "lease lost, dropped everything in flight: relay=r reason=not renewed in time",
    ),
    (
        StoreFailed(relay="r", error="connection refused", delay=0.4),
        "WARNING",
        "store failed, retrying in 0.40 s: relay=r error=connection refused",
    ),
    (StoreRestored(relay="r", seconds=3.5), "INFO", "store reachable again after 3.5 s: relay=r"),
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
    (Pruned(relay="r", count=12), "INFO", "retention deleted 12 rows: relay=r"),
    (
        DestinationOverridden(relay="r", destination="orders", paused=True, breaker="open", rate_limit=0.5),
        "INFO",
        "destination override changed: paused, breaker forced open, limited to 0.5/s: destination=orders relay=r",
    ),
    (
        DestinationOverridden(relay="r", destination="*", paused=False, breaker=None, rate_limit=None),
        "INFO",
        "destination override changed: none: destination=* relay=r",
    ),
    (OperatorRequestsExecuted(relay="r", count=2), "INFO", "executed 2 operator requests: relay=r"),
]


@pytest.mark.parametrize(("observation", "level", "text"), LINES, ids=[text for _, _, text in LINES])
def test_each_observation_is_one_line(observation: Observation, level: str, text: str) -> None:
    assert logged(observation) == [("pillarbox.relay", level, text)]


def test_an_outage_is_one_warning_when_it_begins_and_one_for_each_failed_probe() -> None:
    probe = BreakerChanged(
        relay="r", destination="orders", state="open", error="UnavailableError: timeout", next_probe=1.5
    )
    begin = "breaker open: destination=orders relay=r"
    assert logged(OPENED, probe) == [
        (
            "pillarbox.relay",
            "WARNING",
            f"{begin} next_probe_at=2026-11-03T12:01:00.000000Z error=UnavailableError: gone",
        ),
        (
            "pillarbox.relay",
            "WARNING",
            f"{begin} next_probe_at=2026-11-03T12:00:01.500000Z error=UnavailableError: timeout",
        ),
    ]


def test_a_failing_breaker_that_an_operator_forces_closed_is_a_warning() -> None:
    held = BreakerChanged(
        relay="r", destination="orders", state="closed", error="UnavailableError: gone", next_probe=1.5
    )
    [record] = lines(held)
    assert (record.levelname, "error=UnavailableError: gone" in record.getMessage()) == ("WARNING", True)


def test_a_failed_probe_without_a_delay_is_a_warning_too() -> None:
    [record] = lines(BreakerChanged(relay="r", destination="orders", state="half-open", error="UnavailableError: gone"))
    assert record.levelname == "WARNING"


def test_numbers_are_numbers_on_the_record() -> None:
    [record] = lines(BatchSettled(relay="r", delivered=497, retried=2, dead=1, duplicates=3, seconds=0.01))
    found = vars(record)
    assert (found["delivered"], found["failed"], found["retried"], found["dead"]) == (497, 3, 2, 1)


def test_lanes_are_a_list_on_the_record() -> None:
    [record] = lines(LanesAcquired(relay="r", lanes=(1, 2), crashed=(2,)))
    assert (vars(record)["lanes"], vars(record)["crashed"]) == ([1, 2], [2])
