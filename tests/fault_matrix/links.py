"""Faults of networks and clocks."""

from tests.fault_matrix.cells import Cell, Row, Section, not_applicable, shown

_A_FILE = not_applicable("SQLite is a file, without a connection")
_NO_CONNECTION = not_applicable("handlers run in the process of the relay")
_OF_THE_STORE = not_applicable("the transport takes no part")


def _link(test: str, engine: str) -> Cell:
    """All cases of a test of links on one engine."""
    cases = {
        "test_a_slow_link_repeats_nothing": ("delay", "single-bytes", "50-kB-per-second"),
        "test_a_link_that_is_silent_in_one_direction": ("there", "back"),
    }
    found = [f"[{engine}-{case}]" for case in cases.get(test, ())] or [f"[{engine}]"]
    return shown(*(f"extremes/test_links.py::{test}{case}" for case in found))


LINKS = Section(
    title="Network",
    rows=(
        Row(
            name="link-reset",
            fault="connections are reset under load",
            shows="duplicates ≤ in flight per reset, attempts used up 0",
            postgresql=_link("test_a_link_that_is_reset_under_load", "postgres"),
            mariadb=_link("test_a_link_that_is_reset_under_load", "mariadb"),
            sqlite=_A_FILE,
            rabbitmq=_link("test_a_link_that_is_reset_under_load", "rabbitmq"),
            kafka=_link("test_a_link_that_is_reset_under_load", "kafka"),
            nats=_link("test_a_link_that_is_reset_under_load", "nats"),
            redis=_link("test_a_link_that_is_reset_under_load", "redis"),
            webhook=_link("test_a_link_that_is_reset_under_load", "webhook"),
            handlers=_NO_CONNECTION,
        ),
        Row(
            name="black-hole-one-way",
            fault="black hole in one direction",
            shows="the relay notices; duplicates ≤ in flight",
            postgresql=_link("test_a_link_that_is_silent_in_one_direction", "postgres"),
            mariadb=_link("test_a_link_that_is_silent_in_one_direction", "mariadb"),
            sqlite=_A_FILE,
            rabbitmq=_link("test_a_link_that_is_silent_in_one_direction", "rabbitmq"),
            kafka=_link("test_a_link_that_is_silent_in_one_direction", "kafka"),
            nats=_link("test_a_link_that_is_silent_in_one_direction", "nats"),
            redis=_link("test_a_link_that_is_silent_in_one_direction", "redis"),
            webhook=_link("test_a_link_that_is_silent_in_one_direction", "webhook"),
            handlers=_NO_CONNECTION,
        ),
        Row(
            name="black-hole-both-ways",
            fault="black hole in both directions",
            shows="the relay notices; duplicates ≤ in flight",
            postgresql=_link("test_a_link_that_is_silent_in_both_directions", "postgres"),
            mariadb=_link("test_a_link_that_is_silent_in_both_directions", "mariadb"),
            sqlite=_A_FILE,
            rabbitmq=_link("test_a_link_that_is_silent_in_both_directions", "rabbitmq"),
            kafka=_link("test_a_link_that_is_silent_in_both_directions", "kafka"),
            nats=_link("test_a_link_that_is_silent_in_both_directions", "nats"),
            redis=_link("test_a_link_that_is_silent_in_both_directions", "redis"),
            webhook=_link("test_a_link_that_is_silent_in_both_directions", "webhook"),
            handlers=_NO_CONNECTION,
        ),
        Row(
            name="slow-link",
            fault="slow links: delay of 50 ms, slices of one byte, 50 kB/s",
            shows="duplicates 0",
            postgresql=_link("test_a_slow_link_repeats_nothing", "postgres"),
            mariadb=_link("test_a_slow_link_repeats_nothing", "mariadb"),
            sqlite=_A_FILE,
            rabbitmq=_link("test_a_slow_link_repeats_nothing", "rabbitmq"),
            kafka=_link("test_a_slow_link_repeats_nothing", "kafka"),
            nats=_link("test_a_slow_link_repeats_nothing", "nats"),
            redis=_link("test_a_slow_link_repeats_nothing", "redis"),
            webhook=_link("test_a_slow_link_repeats_nothing", "webhook"),
            handlers=_NO_CONNECTION,
        ),
        Row(
            name="lossy-link",
            fault="lossy links: single messages are lost",
            shows="duplicates ≤ in flight per loss",
            postgresql=_link("test_a_settlement_whose_answer_is_lost_repeats_nothing", "postgres"),
            mariadb=_link("test_a_settlement_whose_answer_is_lost_repeats_nothing", "mariadb"),
            sqlite=_A_FILE,
            rabbitmq=_link("test_lost_confirms_are_sent_again", "rabbitmq"),
            kafka=_link("test_lost_confirms_are_sent_again", "kafka"),
            nats=_link("test_lost_confirms_are_sent_again", "nats"),
            redis=_link("test_lost_confirms_are_sent_again", "redis"),
            webhook=_link("test_lost_confirms_are_sent_again", "webhook"),
            handlers=_NO_CONNECTION,
        ),
    ),
)

_CONSUMERS = "extremes/test_consumer_clocks.py"
_ON_TIME = f"{_CONSUMERS}::test_a_broker_that_times_the_retries_is_on_time"
_AHEAD = f"{_CONSUMERS}::test_a_clock_that_jumps_ahead_repeats_and_loses_no_retry"
_REFUSED = "extremes/test_clocks.py::test_webhooks_that_a_verifier_refuses_for_their_time_are_retried"

CLOCKS = Section(
    title="Clocks",
    rows=(
        Row(
            name="clock-relay",
            fault="the wall clock of the relay's host jumps by ±1 h",
            shows="wrong takeovers 0, lost 0; nothing is deleted, and no wait is changed",
            postgresql=shown(
                "extremes/test_clocks.py::test_a_relay_whose_clock_jumps_keeps_its_lanes[postgres-3600]",
                "extremes/test_clocks.py::test_a_relay_whose_clock_jumps_keeps_its_lanes[postgres--3600]",
            ),
            mariadb=shown(
                "extremes/test_clocks.py::test_a_relay_whose_clock_jumps_keeps_its_lanes[mariadb-3600]",
                "extremes/test_clocks.py::test_a_relay_whose_clock_jumps_keeps_its_lanes[mariadb--3600]",
            ),
            sqlite=shown(
                "extremes/test_clocks.py::test_a_relay_whose_clock_jumps_keeps_its_lanes[sqlite-3600]",
                "extremes/test_clocks.py::test_a_relay_whose_clock_jumps_keeps_its_lanes[sqlite--3600]",
                "integration/sqlite/test_clock_jumps.py",
            ),
            rabbitmq=shown("extremes/test_clocks.py::test_a_relay_whose_clock_jumps_keeps_its_lanes"),
            kafka=shown(
                "extremes/test_clocks.py::test_a_relay_whose_clock_jumps_sends_to_kafka",
                "extremes/test_clocks.py::test_a_timestamp_that_kafka_refuses_uses_up_no_attempt",
                "extremes/test_clocks.py::test_a_clock_that_is_set_back_during_an_outage_does_not_prolong_it[kafka]",
            ),
            nats=not_applicable("the transport reads no wall clock"),
            redis=shown(
                "extremes/test_clocks.py::test_a_relay_whose_clock_jumps_deletes_no_young_entry_of_a_stream",
                "unit/transports/redis/test_server_clock.py",
            ),
            webhook=shown(
                f"{_REFUSED}[relay-3600]",
                f"{_REFUSED}[relay--3600]",
                "integration/webhook/test_requests.py::"
                "test_a_wait_until_a_date_does_not_depend_on_the_clock_of_the_relay",
            ),
            handlers=not_applicable("the transport reads no wall clock"),
        ),
        Row(
            name="clock-database",
            fault="the wall clock of the database server jumps by ±1 h",
            shows="lost 0, order kept; a lease may end once",
            postgresql=shown(
                "extremes/test_clocks.py::test_a_database_whose_clock_jumps_loses_nothing[postgres_under]"
            ),
            mariadb=shown("extremes/test_clocks.py::test_a_database_whose_clock_jumps_loses_nothing[mariadb_under]"),
            sqlite=shown("extremes/test_clocks.py::test_a_relay_whose_clock_jumps_keeps_its_lanes[sqlite-3600]"),
            rabbitmq=_OF_THE_STORE,
            kafka=_OF_THE_STORE,
            nats=_OF_THE_STORE,
            redis=_OF_THE_STORE,
            webhook=_OF_THE_STORE,
            handlers=_OF_THE_STORE,
        ),
        Row(
            name="clock-consumer",
            fault="the wall clock of a consumer's host jumps by ±1 h",
            shows="lost 0; retries are late by no more than the jump",
            postgresql=not_applicable("the source decides when a retry is due"),
            mariadb=not_applicable("the source decides when a retry is due"),
            sqlite=not_applicable("the source decides when a retry is due"),
            rabbitmq=shown(f"{_ON_TIME}[rabbitmq-3600]", f"{_ON_TIME}[rabbitmq--3600]"),
            kafka=shown(
                f"{_AHEAD}[kafka]",
                f"{_CONSUMERS}::test_a_clock_that_jumps_back_delays_the_retries_of_kafka_by_as_much",
            ),
            nats=shown(
                f"{_AHEAD}[nats]",
                f"{_CONSUMERS}::test_a_clock_that_jumps_back_delays_the_retries_of_nats_by_as_much",
                f"{_CONSUMERS}::test_a_clock_that_jumps_back_by_an_hour_loses_no_retry_of_nats",
            ),
            redis=shown(f"{_ON_TIME}[redis-3600]", f"{_ON_TIME}[redis--3600]"),
            webhook=shown(f"{_REFUSED}[receiver-3600]", f"{_REFUSED}[receiver--3600]"),
            handlers=not_applicable("the relay retries"),
        ),
    ),
)
