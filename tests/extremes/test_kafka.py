"""A Kafka cluster that refuses connections, loses a broker, and confirms late or never, with relay processes.

The cluster is librdkafka's mock, see `tests/servers/kafka.py`. Brokers that are down keep their logs, as stopped ones
do. All brokers have the same logs, as if they were in sync: any can become the leader of a partition.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AdminClient

from tests.extremes.conftest import MakeScene
from tests.extremes.linked import QUICK, received
from tests.extremes.relays import MAX_IN_FLIGHT, RelayProcess
from tests.extremes.scene import Scene
from tests.integration.kafka.topics import ids, read_all
from tests.servers.kafka import PRODUCE, KafkaServer

BROKERS = 3
LEADER, NEXT, FOLLOWER = 1, 2, 3
PARTITIONS = 6
EVENTS = 200
OUTAGES = 2
ANSWERS = {"not-enough-replicas": 19, "not-enough-replicas-after-append": 20, "storage-error": 56}
"""What a leader without its replicas answers, and one whose disk failed."""
MANY_KEYS = 1_000
ROUNDS = 5
MANY = 10_000
"""Requests: more than a relay sends; librdkafka repeats each by itself."""
FEW = 60
LATE = 1_000
"""Milliseconds after which a broker answers: half the timeout of a send."""
NEVER = 600_000


@pytest.fixture
def kafka() -> Iterator[KafkaServer]:
    if not KafkaServer.is_mock:
        pytest.skip("not supported: the brokers at KAFKA_URL are not ours to take down")
    with KafkaServer(brokers=BROKERS) as running:
        yield running


@pytest.fixture
def scene(make_scene: MakeScene, postgres_url: str, kafka: KafkaServer) -> Scene:
    made = make_scene(store=postgres_url, transport=kafka.url())
    kafka.create_topic(made.event_type, PARTITIONS)
    return made


def warnings(relay: RelayProcess) -> int:
    return relay.story().count(" WARNING ")


def finish(scene: Scene, kafka: KafkaServer, *, duplicates: int) -> int:
    """Check the result; return how many messages arrived again."""
    scene.write(EVENTS)
    scene.wait_drained()
    assert all(relay.running for relay in scene.relays)
    scene.stop()
    assert scene.attempts() == 0
    arrived = received(kafka, scene.event_type)
    scene.assert_sound(arrived, duplicates=duplicates)
    return len(arrived) - len(set(arrived))


def keys_led_by(kafka: KafkaServer, topic: str, broker: int) -> set[str]:
    """Return the keys, of those that arrived, whose partitions a broker leads."""
    partitions = (
        AdminClient({"bootstrap.servers": kafka.bootstrap}).list_topics(topic, timeout=60).topics[topic].partitions
    )
    arrived = read_all(kafka.bootstrap, topic)
    return {(one.key() or b"").decode() for one in arrived if partitions[one.partition() or 0].leader == broker}


def test_brokers_that_are_all_down_under_load_lose_nothing(scene: Scene, kafka: KafkaServer) -> None:
    relay = scene.start(QUICK)
    with scene.under_load():
        for _ in range(OUTAGES):
            scene.wait_delivered(EVENTS)
            before = warnings(relay)
            kafka.down()
            scene.wait_until(lambda: warnings(relay) > before, what="the relay notices")  # noqa: B023 - called at once
            kafka.up()
    finish(scene, kafka, duplicates=OUTAGES * MAX_IN_FLIGHT)


def test_one_broker_that_is_down_under_load_loses_nothing(scene: Scene, kafka: KafkaServer) -> None:
    late = "SELECT count(*) FROM outbox_message WHERE recorded_at < now() - interval '2 seconds'"
    scene.start(QUICK)
    with scene.under_load():
        for _ in range(OUTAGES):
            scene.wait_delivered(EVENTS)
            kafka.down(LEADER)
            scene.wait_until(lambda: scene.number(late) > 0, what="events wait for the broker")
            kafka.up(LEADER)
    finish(scene, kafka, duplicates=OUTAGES * MAX_IN_FLIGHT)


def test_a_leader_that_is_down_is_replaced_by_another_broker(scene: Scene, kafka: KafkaServer) -> None:
    """The mock elects no leader: the test does. A follower that is down changes nothing."""
    relay = scene.start(QUICK)
    kafka.tell("lead", scene.event_type, LEADER, PARTITIONS)
    with scene.under_load():
        scene.wait_delivered(EVENTS)
        before = warnings(relay)
        kafka.down(LEADER)
        scene.wait_until(lambda: warnings(relay) > before, what="the relay notices")
        kafka.tell("lead", scene.event_type, NEXT, PARTITIONS)
        scene.wait_delivered(EVENTS)
        kafka.up(LEADER)
        kafka.down(FOLLOWER)
        scene.wait_delivered(EVENTS)
        kafka.up(FOLLOWER)
    finish(scene, kafka, duplicates=OUTAGES * MAX_IN_FLIGHT)


@pytest.mark.parametrize("keys", [20, MANY_KEYS])
def test_events_of_other_partitions_arrive_while_a_broker_stays_down(
    make_scene: MakeScene, postgres_url: str, kafka: KafkaServer, keys: int
) -> None:
    """The mock elects no leader, as if the partitions of the broker had no other replica in sync."""
    scene = make_scene(store=postgres_url, transport=kafka.url(), keys=keys)
    kafka.create_topic(scene.event_type, PARTITIONS)
    scene.start(QUICK)
    scene.write(max(EVENTS, keys))
    scene.wait_drained()
    on_broker = keys_led_by(kafka, scene.event_type, LEADER)
    assert 0 < len(on_broker) < keys
    kafka.down(LEADER)
    waiting: set[str] = set()
    for _ in range(ROUNDS):
        written = scene.write(max(EVENTS, keys))
        waiting |= {one for n, one in enumerate(written) if f"key-{n % keys}" in on_broker}
        scene.wait_until(lambda: scene.waiting() == waiting, what="the others are delivered")  # noqa: B023
    kafka.up(LEADER)
    finish(scene, kafka, duplicates=MAX_IN_FLIGHT)


@pytest.mark.parametrize("code", ANSWERS.values(), ids=ANSWERS.keys())
def test_what_a_broker_in_trouble_refuses_is_sent_again(scene: Scene, kafka: KafkaServer, code: int) -> None:
    relay = scene.start(QUICK)
    scene.write(EVENTS)
    scene.wait_drained()
    before = warnings(relay)
    kafka.fail_requests(PRODUCE, *[code] * MANY)
    scene.write(EVENTS)
    scene.wait_until(lambda: warnings(relay) > before, what="the relay notices")
    assert scene.pending() == EVENTS
    kafka.heal()
    finish(scene, kafka, duplicates=0)


def test_late_confirms_are_waited_for(scene: Scene, kafka: KafkaServer) -> None:
    relay = scene.start(QUICK)
    scene.write(EVENTS)
    scene.wait_drained()
    before = warnings(relay)
    kafka.tell("rtt", LATE)
    late = scene.write(FEW)
    scene.wait_drained()
    assert warnings(relay) == before
    kafka.tell("rtt", 0)
    assert finish(scene, kafka, duplicates=0) == 0
    sent = {ids([one])[0]: one.timestamp()[1] for one in read_all(kafka.bootstrap, scene.event_type)}
    settled = dict(scene.query("SELECT event_id, extract(epoch FROM published_at) * 1000 FROM outbox_history"))
    assert all(settled[event_id] >= sent[event_id] + LATE for event_id in late)


def test_lost_confirms_are_sent_again(scene: Scene, kafka: KafkaServer) -> None:
    """The brokers store messages, and are down before they confirm them."""
    relay = scene.start(QUICK)
    scene.write(EVENTS)
    scene.wait_drained()
    started = warnings(relay)
    for _ in range(OUTAGES):
        before = warnings(relay)
        kafka.tell("rtt", NEVER)
        scene.write(EVENTS)
        scene.wait_until(lambda: warnings(relay) > before, what="the relay misses confirms")  # noqa: B023
        kafka.down()
        assert scene.pending() == EVENTS
        kafka.tell("rtt", 0)
        kafka.up()
        scene.wait_drained()
    lost = warnings(relay) - started
    assert finish(scene, kafka, duplicates=lost * MAX_IN_FLIGHT) > 0
