"""What the doctor makes of the configurations of topics, which a mock cluster does not tell."""

import pytest

from pillarbox.transports.kafka.diagnosis import durability_of, sizes_of

MIB = 2**20
BATCH = 1_000_000
DEFAULT = {"min.insync.replicas": "1", "max.message.bytes": "1048588"}


def test_a_topic_whose_confirms_may_come_from_one_broker_is_a_warning() -> None:
    found = durability_of({"orders": DEFAULT, "bills": {"min.insync.replicas": "2"}, "hidden": {}})
    assert (found.result, "min.insync.replicas of orders is 1" in found.message) == ("warn", True)
    assert "min.insync.replicas=2" in found.fix


@pytest.mark.parametrize("configurations", [{}, {"hidden": {}}, {"bills": {"min.insync.replicas": "2"}}])
def test_topics_with_several_in_sync_replicas_pass(configurations: dict[str, dict[str, str]]) -> None:
    assert durability_of(configurations).result == "pass"


def test_a_topic_that_refuses_whole_batches_is_a_warning_until_batches_are_smaller() -> None:
    small = {"orders": {"max.message.bytes": "10000"}, "bills": {"max.message.bytes": "2000000"}}
    found = sizes_of(small, max_payload=1000, batch_size=BATCH)
    assert (found.result, "(orders: 10000): whole batches are refused" in found.message) == ("warn", True)
    assert sizes_of(small, max_payload=1000, batch_size=10_000).result == "pass"


def test_the_default_of_kafka_is_too_small_for_the_largest_payload_with_its_headers() -> None:
    found = sizes_of({"orders": DEFAULT}, max_payload=MIB, batch_size=BATCH)
    assert (found.result, "(orders: 1048588): larger events are dead-lettered" in found.message) == ("warn", True)
    assert "raise max.message.bytes to 1052672" in found.fix
    enough = {"orders": {"max.message.bytes": "1052672"}}
    assert sizes_of(enough, max_payload=MIB, batch_size=BATCH).result == "pass"
    assert sizes_of({"orders": {"max.message.bytes": "1052671"}}, max_payload=MIB, batch_size=BATCH).result == "warn"


@pytest.mark.parametrize("written", [{}, {"max.message.bytes": ""}, {"max.message.bytes": "None"}])
def test_limits_that_the_cluster_does_not_tell_pass(written: dict[str, str]) -> None:
    assert sizes_of({"orders": written}, max_payload=MIB, batch_size=BATCH).result == "pass"
