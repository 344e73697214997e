"""Wall clocks of consumers that jump by an hour while messages wait for their retry.

RabbitMQ and Redis time the delays. On Kafka and NATS a retry is due by the wall clock of the consumer: a clock that is
set back delays it by as much, and one that is set ahead may end its delay.
"""

from __future__ import annotations

import asyncio
import json
import re
import socket
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.extremes.clocks import HOUR, FakeClock
from tests.extremes.conftest import MakeScene
from tests.extremes.linked import Broker, port_of
from tests.extremes.scene import Scene
from tests.integration.consume.processes import ConsumerProcess
from tests.integration.nats.streams import jetstream
from tests.servers.kafka import GROUP_SETTINGS, KafkaServer
from tests.servers.nats import NatsServer
from tests.servers.waiting import wait_until

APP = Path(__file__).with_name("retrying_app.py")
FEW = 5
DELAY = 8
"""Seconds until a retry."""
SHORT = 15
"""Seconds that a clock is set back where the test waits for all that follows from it."""
BOUND = 120.0
OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "rabbitmq": {"retry_delays": [f"{DELAY}s"]},
    "kafka": {"client": GROUP_SETTINGS},
    "nats": {},
    "redis": {},
}
_NAK = re.compile(rb'-NAK {"delay": (\d+)}')


class Consumption:
    """A consumer process under a clock, a relay that sends to its broker, and the effects."""

    def __init__(self, scene: Scene, clock: FakeClock, broker: Broker, options: Mapping[str, Any]) -> None:
        self.scene = scene
        self.broker = broker
        self.clock = clock
        scene.query("CREATE TABLE effect (event_id text NOT NULL, waited float NOT NULL, ahead float NOT NULL)")
        if isinstance(broker, KafkaServer):
            for name in ("", ".retrying.retry", ".retrying.dlq"):
                broker.create_topic(f"{scene.event_type}{name}")
        # The relay makes what the consumer receives from.
        scene.start()
        self.write(1, fails=False)
        self.process = ConsumerProcess(
            scene.folder,
            app=APP,
            BROKER=broker.url(),
            NAME=scene.event_type,
            OPTIONS=json.dumps(options),
            DATABASE=scene.store,
            DELAY=f"{DELAY}s",
            **clock.environment,
        )
        clock.serve(self.process.pid)

    def write(self, count: int, *, fails: bool) -> set[str]:
        """Record events and wait until the broker has them; return their ids."""
        written = self.scene.write(count, {"fails": fails})
        self.scene.wait_drained()
        return set(written)

    def let_fail(self) -> set[str]:
        """Return the ids of events that wait for their retry."""
        written = self.write(FEW, fails=True)
        self.wait_until(lambda: written <= self.failed(), what="the events fail")
        # Handled after the delays began.
        self.wait_handled(self.write(1, fails=False))
        waiting = written - self.effects().keys()
        assert waiting, "no event waits for its retry"
        return waiting

    def failed(self) -> set[str]:
        try:
            return set((self.scene.folder / "failures.txt").read_text().split())
        except FileNotFoundError:
            return set()

    def effects(self) -> dict[str, float]:
        """Return the seconds from the failure of each event to its effect; each event has one effect."""
        rows = self.scene.query("SELECT event_id, waited FROM effect")
        effects = dict(rows)
        assert len(effects) == len(rows)
        return effects

    def check_clock(self, seconds: int) -> None:
        """Check that the clock of the consumer was that far ahead at the last effect."""
        [(ahead,)] = self.scene.query("SELECT ahead FROM effect ORDER BY ctid DESC LIMIT 1")
        assert abs(ahead - seconds) < HOUR / 4, "the clock did not jump"

    def wait_handled(self, events: set[str]) -> None:
        self.wait_until(lambda: events <= self.effects().keys(), what="the events are handled")

    def wait_until(self, fact: Callable[[], bool], *, what: str) -> None:
        try:
            wait_until(fact, bound=BOUND, what=what, pause=0.05)
        except TimeoutError:
            print(self.process.log_text()[-4000:])
            raise

    def finish(self, *, but: Collection[str] = ()) -> None:
        """Check that every event has its effect, except those that wait at the broker."""
        committed = {event_id for ids in self.scene.ledger.committed.values() for event_id in ids}
        expected = committed.difference(but)
        self.wait_handled(expected)
        assert self.effects().keys() == expected
        self.process.terminate()
        assert self.process.wait() == 0
        assert "dead-lettered" not in self.process.log_text()
        self.scene.stop()


MakeConsumption = Callable[[str], Consumption]


@pytest.fixture
def consume(
    request: pytest.FixtureRequest, make_scene: MakeScene, postgres_url: str, clock: FakeClock
) -> Iterator[MakeConsumption]:
    """Starts a consumer of a broker, under `clock`."""
    made: list[Consumption] = []

    def make(name: str) -> Consumption:
        broker = request.getfixturevalue(f"{name}_server")
        scene = make_scene(store=postgres_url, transport=broker.url(), keys=FEW)
        made.append(Consumption(scene, clock, broker, OPTIONS[name]))
        return made[-1]

    yield make
    for one in made:
        with suppress(ProcessLookupError):
            one.process.end()


@pytest.mark.parametrize("seconds", [HOUR, -HOUR])
@pytest.mark.parametrize("broker", ["rabbitmq", "redis"])
def test_a_broker_that_times_the_retries_is_on_time(
    consume: MakeConsumption, clock: FakeClock, broker: str, seconds: int
) -> None:
    consumption = consume(broker)
    waiting = consumption.let_fail()
    clock.jump(seconds)
    consumption.wait_handled(waiting)
    effects = consumption.effects()
    assert min(effects[one] for one in waiting) > DELAY - 0.1
    consumption.check_clock(seconds)
    consumption.finish()


@pytest.mark.parametrize("broker", ["kafka", "nats"])
def test_a_clock_that_jumps_ahead_repeats_and_loses_no_retry(
    consume: MakeConsumption, clock: FakeClock, broker: str
) -> None:
    consumption = consume(broker)
    consumption.let_fail()
    clock.jump(HOUR)
    consumption.let_fail()
    consumption.check_clock(HOUR)
    consumption.finish()


def test_a_clock_that_jumps_back_delays_the_retries_of_kafka_by_as_much(
    consume: MakeConsumption, clock: FakeClock
) -> None:
    consumption = consume("kafka")
    late = delay_by_an_hour(consumption)
    clock.jump(0)  # as if the hour had passed
    consumption.wait_handled(late)
    consumption.finish()


def delay_by_an_hour(consumption: Consumption) -> set[str]:
    """Set the clock back while events wait; return those that still do after others were retried."""
    waiting = consumption.let_fail()
    consumption.clock.jump(-HOUR)
    consumption.wait_handled(consumption.let_fail())
    consumption.check_clock(-HOUR)
    late = waiting - consumption.effects().keys()
    assert late, "the jump delayed no retry"
    return late


class Naks:
    """The delays that consumers ask NATS for, in seconds."""

    def __init__(self, server: NatsServer) -> None:
        self._connection = socket.create_connection(("127.0.0.1", port_of(server.url())))
        self._connection.sendall(b'CONNECT {"verbose":false}\r\nSUB $JS.ACK.> 1\r\n')
        self._read = b""

    def __call__(self) -> list[float]:
        self._connection.setblocking(False)
        with suppress(BlockingIOError):
            while data := self._connection.recv(1 << 16):
                self._read += data
        return [int(nanoseconds) / 1e9 for nanoseconds in _NAK.findall(self._read)]

    def close(self) -> None:
        self._connection.close()


@pytest.fixture
def naks(nats_server: NatsServer) -> Iterator[Naks]:
    found = Naks(nats_server)
    yield found
    found.close()


def test_a_clock_that_jumps_back_delays_the_retries_of_nats_by_as_much(
    consume: MakeConsumption, clock: FakeClock, naks: Naks
) -> None:
    consumption = consume("nats")
    waiting = consumption.let_fail()
    clock.jump(-SHORT)
    consumption.wait_handled(waiting)
    effects = consumption.effects()
    assert max(effects[one] for one in waiting) > DELAY + SHORT - 1
    assert SHORT / 2 < max(naks()) <= DELAY + SHORT
    consumption.finish()


def test_a_clock_that_jumps_back_by_an_hour_loses_no_retry_of_nats(consume: MakeConsumption, naks: Naks) -> None:
    """The consumer asks NATS to wait for no more than the hour. The test does not wait for it."""
    consumption = consume("nats")
    late = delay_by_an_hour(consumption)
    assert HOUR / 2 < max(naks()) <= DELAY + HOUR
    consumption.wait_until(
        lambda: asyncio.run(unacknowledged(consumption)) == len(late), what="NATS keeps the late retries and no other"
    )
    consumption.finish(but=late)


async def unacknowledged(consumption: Consumption) -> int:
    """Return how many retries NATS keeps."""
    async with jetstream(consumption.broker.url()) as server:
        return (await server.stream_info(f"{consumption.scene.event_type}_retrying_retry")).state.messages
