"""Gauges of the current state of this process's relays, computed at each scrape."""

from __future__ import annotations

from collections.abc import Iterator

from pillarbox.core.observations import RelayStalled, RelayStallEnded, RelayStarted, RelayStateChanged, RelayStopped
from pillarbox.core.store import EVERYWHERE
from pillarbox.telemetry.prometheus.client import Bounded, Collector, GaugeMetricFamily

BREAKERS = {"closed": 0, "half-open": 1, "open": 2}
"""Each breaker state as a number: the worse, the higher."""


class RelayGauges(Collector):
    """Gauges over every running relay of this process."""

    def __init__(self, destination: Bounded) -> None:
        self._destination = destination
        self._states: dict[str, RelayStateChanged | None] = {}
        self._stalled: set[str] = set()

    def update(
        self, observation: RelayStarted | RelayStateChanged | RelayStopped | RelayStalled | RelayStallEnded
    ) -> None:
        """Keep the state of a relay until the relay stops."""
        match observation:
            case RelayStarted(relay=relay):
                self._states[relay] = None
            case RelayStateChanged(relay=relay):
                self._states[relay] = observation
            case RelayStalled(relay=relay):
                self._stalled.add(relay)
            case RelayStallEnded(relay=relay):
                self._stalled.discard(relay)
            case RelayStopped(relay=relay):
                self._states.pop(relay, None)
                self._stalled.discard(relay)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        running, stalled, in_flight, lanes, breakers, paused, rates = self._families()
        relays = list(self._states.values())  # a scrape in another thread may run while relays start and stop
        known = [one for one in relays if one is not None]
        running.add_metric([], len(relays))
        stalled.add_metric([], bool(self._stalled))
        in_flight.add_metric([], sum(one.in_flight for one in known))
        lanes.add_metric([], sum(one.lanes for one in known))
        worst: dict[str, int] = {}
        pauses: dict[str, bool] = {}
        allowed: dict[str, float] = {}
        for one in known:
            for name in sorted({*one.breakers, *one.paused}):
                destination = self._destination(name)
                pauses[destination] = pauses.get(destination, False) or not one.paused.isdisjoint({name, EVERYWHERE})
            for name, state in one.breakers.items():
                destination = self._destination(name)
                worst[destination] = max(worst.get(destination, 0), BREAKERS[state])
            for name, rate in one.rates.items():
                destination = self._destination(name)
                allowed[destination] = allowed.get(destination, 0.0) + rate
        for destination, number in worst.items():
            breakers.add_metric([destination], number)
        for destination, is_paused in pauses.items():
            paused.add_metric([destination], is_paused)
        for destination, rate in allowed.items():
            rates.add_metric([destination], rate)
        yield from (running, stalled, in_flight, lanes, breakers, paused, rates)

    def describe(self) -> Iterator[GaugeMetricFamily]:
        yield from self._families()

    def _families(self) -> tuple[GaugeMetricFamily, ...]:
        return (
            GaugeMetricFamily("outbox_relays_running", "Running relays of this process."),
            GaugeMetricFamily(
                "outbox_relay_stalled", "1 if a relay of this process makes no progress although it could."
            ),
            GaugeMetricFamily("outbox_in_flight", "Messages fetched and not yet settled or released."),
            GaugeMetricFamily("outbox_lanes_owned", "Lanes that the relays of this process own."),
            GaugeMetricFamily(
                "outbox_breaker_state",
                "0 closed, 1 half-open, 2 open; the worst of this process.",
                labels=["destination"],
            ),
            GaugeMetricFamily(
                "outbox_destination_paused",
                "1 if an operator paused the destination; * stands for all.",
                labels=["destination"],
            ),
            GaugeMetricFamily(
                "outbox_rate_limit", "Messages per second that this process may send.", labels=["destination"]
            ),
        )
