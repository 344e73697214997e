"""Faults of networks and clocks."""

from tests.fault_matrix.cells import Cell, Row, Section, missing, not_applicable, partly, shown

_A_FILE = not_applicable("SQLite is a file, without a connection")
_NO_CONNECTION = not_applicable("handlers run in the process of the relay")
_OF_THE_STORE = not_applicable("the transport takes no part")
_NO_LINK_TO_KAFKA = missing(
    "Kafka's client connects to the addresses that brokers name, and not through the link of these tests"
)


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
            kafka=partly(
                "the mock cluster refuses connections for a while",
                "conformance/test_kafka.py::TestKafka::test_no_accepted_message_is_lost_around_an_outage",
                "integration/kafka/test_relay.py::test_events_reach_the_inbox_once_and_in_order_through_an_outage",
            ),
            nats=_link("test_a_link_that_is_reset_under_load", "nats"),
            redis=_link("test_a_link_that_is_reset_under_load", "redis"),
            webhook=partly(
                "the transport alone",
                "conformance/test_webhook.py::TestWebhook::test_no_accepted_message_is_lost_around_an_outage",
                "integration/webhook/test_faults.py::test_a_connection_without_a_whole_response_is_an_outage",
            ),
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
            kafka=_NO_LINK_TO_KAFKA,
            nats=_link("test_a_link_that_is_silent_in_one_direction", "nats"),
            redis=_link("test_a_link_that_is_silent_in_one_direction", "redis"),
            webhook=partly(
                "no response, without a relay",
                "integration/webhook/test_faults.py::"
                "test_a_receiver_that_does_not_respond_is_an_outage_after_the_timeout",
            ),
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
            kafka=_NO_LINK_TO_KAFKA,
            nats=_link("test_a_link_that_is_silent_in_both_directions", "nats"),
            redis=_link("test_a_link_that_is_silent_in_both_directions", "redis"),
            webhook=partly(
                "no response, without a relay",
                "integration/webhook/test_faults.py::"
                "test_a_receiver_that_does_not_respond_is_an_outage_after_the_timeout",
            ),
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
            kafka=_NO_LINK_TO_KAFKA,
            nats=_link("test_a_slow_link_repeats_nothing", "nats"),
            redis=_link("test_a_slow_link_repeats_nothing", "redis"),
            webhook=partly(
                "a slow receiver, not a slow link",
                "integration/webhook/test_relay.py::test_a_slow_receiver_does_not_hold_up_another",
            ),
            handlers=_NO_CONNECTION,
        ),
        Row(
            name="lossy-link",
            fault="lossy links: single messages are lost",
            shows="duplicates ≤ in flight per loss",
            postgresql=shown("extremes/test_links.py::test_a_settlement_whose_answer_is_lost_repeats_nothing"),
            mariadb=missing("a link to it is reset, silent or slow; none loses a single message"),
            sqlite=_A_FILE,
            rabbitmq=shown("extremes/test_links.py::test_lost_confirms_are_sent_again"),
            kafka=_NO_LINK_TO_KAFKA,
            nats=partly(
                "one confirm, without a relay",
                "integration/nats/test_publisher.py::"
                "test_a_message_without_a_confirmation_is_unavailable_and_stored_once_when_sent_again",
            ),
            redis=partly(
                "replies before a loss, without a relay",
                "integration/redis/test_transport_lost.py::test_replies_before_the_loss_count",
            ),
            webhook=partly(
                "responses that break off, without a relay",
                "integration/webhook/test_faults.py::test_a_connection_without_a_whole_response_is_an_outage",
            ),
            handlers=_NO_CONNECTION,
        ),
    ),
)

_ONLY_RABBITMQ = "the relay sends to RabbitMQ"

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
            kafka=missing("the client writes the time of its host into each record, and no clock jumps in a test"),
            nats=not_applicable("the transport reads no wall clock"),
            redis=shown(
                "extremes/test_clocks.py::test_a_relay_whose_clock_jumps_deletes_no_young_entry_of_a_stream",
                "unit/transports/redis/test_server_clock.py",
            ),
            webhook=partly(
                "the wait that a receiver asks for; signatures need the right time, and no clock jumps in a test",
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
            rabbitmq=missing("the broker keeps the delays, and no test moves a clock"),
            kafka=partly(
                "the messages that a consumer holds, without a broker",
                "unit/transports/kafka/test_offsets.py::"
                "test_a_wall_clock_that_jumps_shifts_retries_by_as_much_and_loses_none",
            ),
            nats=missing("a retry is due by the wall clock of the consumer, and no clock jumps in a test"),
            redis=missing("retries are due by the server's TIME, and no test moves a clock"),
            webhook=missing("the tolerance of the verifier is documented; no clock jumps in a test"),
            handlers=not_applicable("the relay retries"),
        ),
    ),
)
