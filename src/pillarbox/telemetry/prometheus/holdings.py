"""What the relays of this process hold now: nothing is computed before somebody asks."""

from __future__ import annotations

from collections.abc import Iterator

from pillarbox.core.observations import RelayStalled, RelayStallEnded, RelayStarted, RelayStateChanged, RelayStopped
from pillarbox.core.store import EVERYWHERE
from pillarbox.telemetry.prometheus.client import Bounded, Collector, GaugeMetricFamily

BREAKERS = {"closed": 0, "half-open": 1, "open": 2}
"""Each state as a number: the worse, the higher."""


class Holdings(Collector):
    """Gauges over every relay that runs here."""

    def __init__(self, destination: Bounded) -> None:
        self._destination = destination
        self._held: dict[str, RelayStateChanged | None] = {}
        self._stalled: set[str] = set()

    def heard(
        self, observation: RelayStarted | RelayStateChanged | RelayStopped | RelayStalled | RelayStallEnded
    ) -> None:
        """Remember it, until its relay has stopped."""
        match observation:
            case RelayStarted(relay=relay):
                self._held[relay] = None
            case RelayStateChanged(relay=relay):
                self._held[relay] = observation
            case RelayStalled(relay=relay):
                self._stalled.add(relay)
            case RelayStallEnded(relay=relay):
                self._stalled.discard(relay)
            case RelayStopped(relay=relay):
                self._held.pop(relay, None)
                self._stalled.discard(relay)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        running, stalled, in_flight, lanes, breakers, paused, rates = self._families()
        relays = list(self._held.values())  # another thread may ask while relays come and go
        held = [one for one in relays if one is not None]
        running.add_metric([], len(relays))
        stalled.add_metric([], bool(self._stalled))
        in_flight.add_metric([], sum(one.in_flight for one in held))
        lanes.add_metric([], sum(one.lanes for one in held))
        worst: dict[str, int] = {}
        stopped: dict[str, bool] = {}
        allowed: dict[str, float] = {}
        for one in held:
            for name in sorted({*one.breakers, *one.paused}):
                destination = self._destination(name)
                stopped[destination] = stopped.get(destination, False) or not one.paused.isdisjoint({name, EVERYWHERE})
            for name, state in one.breakers.items():
                destination = self._destination(name)
                worst[destination] = max(worst.get(destination, 0), BREAKERS[state])
            for name, rate in one.rates.items():
                destination = self._destination(name)
                allowed[destination] = allowed.get(destination, 0.0) + rate
        for destination, number in worst.items():
            breakers.add_metric([destination], number)
        for destination, is_paused in stopped.items():
            paused.add_metric([destination], is_paused)
        for destination, rate in allowed.items():
            rates.add_metric([destination], rate)
        yield from (running, stalled, in_flight, lanes, breakers, paused, rates)

    def describe(self) -> Iterator[GaugeMetricFamily]:
        yield from self._families()

    def _families(self) -> tuple[GaugeMetricFamily, ...]:
        return (
            GaugeMetricFamily("outbox_relays_running", "Relays that run in this process."),
            GaugeMetricFamily(
                "outbox_relay_stalled", "1 if a relay of this process makes no progress although it could."
            ),
            GaugeMetricFamily("outbox_in_flight", "Messages read, and not yet settled or let go of."),
            GaugeMetricFamily("outbox_lanes_held", "Lanes that the relays of this process own."),
            GaugeMetricFamily(
                "outbox_breaker_state", "0 closed, 1 half-open, 2 open: the worst here.", labels=["destination"]
            ),
            GaugeMetricFamily(
                "outbox_destination_paused", "1 if a person paused it; * stands for all.", labels=["destination"]
            ),
            GaugeMetricFamily(
                "outbox_rate_limit", "Messages per second that may be sent from here.", labels=["destination"]
            ),
        )
