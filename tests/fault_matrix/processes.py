"""Faults of the processes of Pillarbox: relays, consumers and handlers."""

from tests.fault_matrix.cells import Row, Section, missing, not_applicable, partly, shown

_NO_DELIVERIES = not_applicable("Kafka counts no deliveries")
_A_HANDLER = not_applicable("a fault of a handler")
_A_RELAY = not_applicable("a fault between relay and database; the transport is RabbitMQ")
_FEW_KILLS = "a drill kills a few times, and not at each point"
_UNTIL_TAKEN = "frozen until another relay owns its lane, and not for three leases"
_NONE_IS_FROZEN = missing("no relay that sends to it is frozen")
_NO_FLEET = missing("no test changes the number of relays that send to it")
_GUARD_IN_MEMORY = "the crash guard on the memory store, and the counts of crashes on this one"
_HEARTBEAT = "the heartbeat of the store has its own thread and event loop; no handler blocks a relay on it"

PROCESSES = Section(
    title="Processes",
    rows=(
        Row(
            name="relay-killed",
            fault="SIGKILL of a relay at random and at each named point (before and after fetch, send, confirm, "
            "settlement, release, drain)",
            shows="lost 0, phantom 0, order kept, duplicates ≤ in flight per kill",
            postgresql=shown("faults/test_kills.py::test_relays_killed_at_random_and_at_each_point"),
            mariadb=shown("faults/test_kills.py::test_on_mariadb_relays_killed_at_random_and_at_each_point"),
            sqlite=partly(
                "a few kills, not at each point",
                "drills/test_engines.py::test_a_drill_on_sqlite_passes",
                "drills/test_engines.py::test_a_drill_on_kafka_passes",
                "faults/test_takeover.py::test_on_sqlite_the_lock_of_a_killed_relay_reveals_its_crash",
            ),
            rabbitmq=shown("faults/test_kills.py::test_relays_killed_at_random_and_at_each_point"),
            kafka=partly(_FEW_KILLS, "drills/test_engines.py::test_a_drill_on_kafka_passes"),
            nats=partly(_FEW_KILLS, "drills/test_engines.py::test_a_drill_on_streams_passes[nats_server]"),
            redis=partly(_FEW_KILLS, "drills/test_engines.py::test_a_drill_on_streams_passes[redis_server]"),
            webhook=missing("the receiver is killed in a test; no relay that sends to one is"),
            handlers=partly(
                "a few kills, not at each point",
                "drills/test_engines.py::test_a_drill_on_sqlite_passes",
                "integration/demo/test_embedded.py::test_a_killed_relay_loses_nothing_and_duplicates_at_most_what_was_in_flight",
            ),
        ),
        Row(
            name="relay-takeover",
            fault="the lanes of a killed relay are taken over",
            shows="within 2 s, long before the lease ends",
            postgresql=shown(
                "faults/test_takeover.py::"
                "test_the_lanes_of_a_killed_relay_are_taken_long_before_its_lease_ends[postgres]"
            ),
            mariadb=shown(
                "faults/test_takeover.py::test_the_lanes_of_a_killed_relay_are_taken_long_before_its_lease_ends[mariadb]"
            ),
            sqlite=shown(
                "faults/test_takeover.py::test_on_sqlite_the_lock_of_a_killed_relay_reveals_its_crash",
                "integration/sqlite/test_processes.py::test_the_lane_of_a_killed_process_is_free_at_once",
            ),
            rabbitmq=_A_RELAY,
            kafka=_A_RELAY,
            nats=_A_RELAY,
            redis=_A_RELAY,
            webhook=_A_RELAY,
            handlers=_A_RELAY,
        ),
        Row(
            name="consumer-killed",
            fault="SIGKILL of a consumer before its commit, and between commit and acknowledgement",
            shows="each effect once",
            postgresql=shown(
                "integration/consume/test_crashes.py::test_a_crash_between_commit_and_ack_has_one_effect",
                "integration/consume/test_crashes.py::test_a_crash_before_the_commit_is_rolled_back_and_handled_again",
                "faults/test_drill.py::test_a_drill_with_every_guard_passes",
            ),
            mariadb=partly(
                "a few kills, not at each point",
                "drills/test_engines.py::test_a_drill_on_streams_passes[nats_server]",
                "drills/test_engines.py::test_a_drill_on_streams_passes[redis_server]",
            ),
            sqlite=partly(
                "a few kills, not at each point",
                "drills/test_engines.py::test_a_drill_on_kafka_passes",
            ),
            rabbitmq=shown(
                "integration/consume/test_crashes.py::test_a_crash_between_commit_and_ack_has_one_effect",
                "integration/consume/test_crashes.py::test_a_crash_before_the_commit_is_rolled_back_and_handled_again",
            ),
            kafka=partly(_FEW_KILLS, "drills/test_engines.py::test_a_drill_on_kafka_passes"),
            nats=partly(_FEW_KILLS, "drills/test_engines.py::test_a_drill_on_streams_passes[nats_server]"),
            redis=partly(
                _FEW_KILLS,
                "drills/test_engines.py::test_a_drill_on_streams_passes[redis_server]",
                "integration/redis/test_source.py::test_messages_of_a_killed_consumer_are_delivered_to_another",
            ),
            webhook=shown(
                "integration/webhook/test_relay.py::test_nothing_accepted_is_lost_when_the_receiver_is_killed"
            ),
            handlers=partly(
                "no process is killed: the redelivery after the commit",
                "integration/consume/test_in_process.py::test_a_duplicate_after_the_commit_is_skipped",
            ),
        ),
        Row(
            name="relay-frozen",
            fault="a relay is frozen (SIGSTOP) for three leases, then continues",
            shows="it settles nothing under its old epoch; order kept",
            postgresql=shown(
                "faults/test_stale_relay.py::test_a_relay_that_resumes_after_its_lease_settles_nothing[postgres-3-True]",
                "faults/test_stale_relay.py::test_a_relay_that_resumes_after_its_lease_settles_nothing[postgres-1-False]",
                "faults/test_stale_relay.py::test_lanes_are_not_taken_from_under_a_settlement",
            ),
            mariadb=shown(
                "faults/test_stale_relay.py::test_a_relay_that_resumes_after_its_lease_settles_nothing[mariadb-3-True]",
                "faults/test_stale_relay.py::test_a_relay_that_resumes_after_its_lease_settles_nothing[mariadb-1-False]",
            ),
            sqlite=partly(
                _UNTIL_TAKEN,
                "drills/test_engines.py::test_a_drill_on_sqlite_passes",
                "integration/relay/test_suspended.py::test_a_relay_continues_after_it_was_suspended",
                "integration/sqlite/test_clock_jumps.py::test_a_frozen_relay_loses_its_lanes_after_its_lease",
                "integration/sqlite/test_processes.py::test_an_old_epoch_writes_nothing",
            ),
            rabbitmq=shown(
                "faults/test_stale_relay.py::test_a_relay_that_resumes_after_its_lease_settles_nothing[postgres-3-True]"
            ),
            kafka=_NONE_IS_FROZEN,
            nats=_NONE_IS_FROZEN,
            redis=_NONE_IS_FROZEN,
            webhook=_NONE_IS_FROZEN,
            handlers=partly(_UNTIL_TAKEN, "drills/test_engines.py::test_a_drill_on_sqlite_passes"),
        ),
        Row(
            name="fleet",
            fault="relays 1 → 4 → 2, and a rolling restart with drain",
            shows="order kept, duplicates 0",
            postgresql=shown(
                "faults/test_fleet.py::test_from_one_relay_to_four_to_two[postgres]",
                "faults/test_fleet.py::test_a_rolling_restart_repeats_no_event[postgres]",
            ),
            mariadb=shown(
                "faults/test_fleet.py::test_from_one_relay_to_four_to_two[mariadb]",
                "faults/test_fleet.py::test_a_rolling_restart_repeats_no_event[mariadb]",
            ),
            sqlite=partly(
                "one lane: the drain of a drill, no change of the number",
                "drills/test_engines.py::test_a_drill_on_sqlite_passes",
                "drills/test_engines.py::test_a_drill_on_kafka_passes",
            ),
            rabbitmq=shown("faults/test_fleet.py::test_from_one_relay_to_four_to_two[postgres]"),
            kafka=partly("the drain of a drill", "drills/test_engines.py::test_a_drill_on_kafka_passes"),
            nats=_NO_FLEET,
            redis=_NO_FLEET,
            webhook=_NO_FLEET,
            handlers=partly(
                "the drain of a drill, and three relays that share the lanes",
                "drills/test_engines.py::test_a_drill_on_sqlite_passes",
                "integration/relay/test_resources.py::test_several_relays_in_one_process_share_the_lanes",
            ),
        ),
        Row(
            name="handler-fails",
            fault="poison: a handler that always fails",
            shows="only its own key waits; the event is dead-lettered or blocked",
            postgresql=shown("faults/test_handlers.py::test_a_handler_that_fails_blocks_its_own_key_only"),
            mariadb=partly(
                "what the store does with retries and a dead letter; no relay calls a handler",
                "conformance/test_mariadb.py::TestMariaDBStore::test_a_dead_letter_in_the_middle_keeps_the_rest_in_order",
                "conformance/test_mariadb.py::TestMariaDBStore::test_order_within_a_key_survives_retries_and_takeovers",
            ),
            sqlite=partly(
                "that the events of other keys are not late is not checked",
                "integration/relay/test_embedded.py::test_a_failed_handler_is_retried_and_a_permanent_error_is_dead_lettered",
                "integration/webhook/test_relay.py::test_a_rejected_event_is_retried_by_its_policy_and_dead_lettered",
                "conformance/test_sqlite.py::TestSqliteStore::test_a_dead_letter_in_the_middle_keeps_the_rest_in_order",
            ),
            rabbitmq=shown(
                "integration/consume/test_failures.py::test_retries_are_bounded_and_the_dead_letter_has_the_errors",
                "integration/consume/test_failures.py::test_a_waiting_message_does_not_delay_others",
            ),
            kafka=shown(
                "conformance/test_sources_kafka.py::TestKafkaSource::test_other_messages_do_not_wait_for_a_retried_one",
                "conformance/test_sources_kafka.py::TestKafkaSource::"
                "test_a_rejected_message_becomes_a_complete_dead_letter",
            ),
            nats=shown(
                "integration/nats/test_source.py::"
                "test_a_handler_that_fails_to_the_end_makes_a_dead_letter_with_its_history",
                "conformance/test_sources_nats.py::TestNatsSource::test_other_messages_do_not_wait_for_a_retried_one",
            ),
            redis=shown(
                "conformance/test_sources_redis.py::TestRedisSource::test_other_messages_do_not_wait_for_a_retried_one",
                "conformance/test_sources_redis.py::TestRedisSource::"
                "test_a_rejected_message_becomes_a_complete_dead_letter",
            ),
            webhook=shown(
                "integration/webhook/test_relay.py::test_a_rejected_event_is_retried_by_its_policy_and_dead_lettered",
                "integration/webhook/test_relay.py::test_a_slow_receiver_does_not_hold_up_another",
            ),
            handlers=shown("faults/test_handlers.py::test_a_handler_that_fails_blocks_its_own_key_only"),
        ),
        Row(
            name="handler-kills",
            fault="poison: a handler that kills its process",
            shows="other keys flow; only the poison is dead-lettered",
            postgresql=shown("faults/test_handlers.py::test_a_handler_that_kills_its_process_harms_no_other_key"),
            mariadb=partly(
                _GUARD_IN_MEMORY,
                "simulation/test_quarantine.py::test_a_message_that_crashes_its_relays_is_the_only_dead_letter",
                "conformance/test_mariadb.py::TestMariaDBStore::test_crashes_are_counted_until_a_settlement",
            ),
            sqlite=partly(
                _GUARD_IN_MEMORY,
                "simulation/test_quarantine.py::test_a_message_that_crashes_its_relays_is_the_only_dead_letter",
                "conformance/test_sqlite.py::TestSqliteStore::test_crashes_are_counted_until_a_settlement",
            ),
            rabbitmq=shown(
                "integration/consume/test_crashes.py::test_a_message_that_crashes_its_consumer_is_dead_lettered"
            ),
            kafka=_NO_DELIVERIES,
            nats=partly(
                "the consumer is closed without an acknowledgement, not killed",
                "conformance/test_sources_nats.py::TestNatsSource::"
                "test_a_message_that_crashes_its_consumers_is_delivered_alone_and_counted_if_crashes_are",
            ),
            redis=partly(
                "the consumer is closed without an acknowledgement, not killed",
                "conformance/test_sources_redis.py::TestRedisSource::"
                "test_a_message_that_crashes_its_consumers_is_delivered_alone_and_counted_if_crashes_are",
            ),
            webhook=not_applicable("the receiver is another process, and the relay survives"),
            handlers=shown("faults/test_handlers.py::test_a_handler_that_kills_its_process_harms_no_other_key"),
        ),
        Row(
            name="handler-blocks",
            fault="poison: a handler that blocks the event loop, or hangs",
            shows="lanes stay; other keys and handlers flow",
            postgresql=shown(
                "faults/test_handlers.py::test_a_handler_that_blocks_the_event_loop_does_not_lose_the_lanes"
            ),
            mariadb=partly(
                _HEARTBEAT,
                "conformance/test_mariadb.py::TestMariaDBStore::test_a_heartbeat_runs_in_its_own_thread_and_event_loop",
            ),
            sqlite=partly(
                _HEARTBEAT,
                "conformance/test_sqlite.py::TestSqliteStore::test_a_heartbeat_runs_in_its_own_thread_and_event_loop",
            ),
            rabbitmq=_A_HANDLER,
            kafka=partly(
                "a slow handler, not a blocked loop",
                "integration/kafka/test_source.py::test_a_busy_consumer_is_paused_and_resumed",
            ),
            nats=partly(
                "a slow handler, not a blocked loop",
                "integration/nats/test_source.py::test_a_slow_handler_keeps_its_message",
            ),
            redis=partly(
                "a slow handler, not a blocked loop",
                "integration/redis/test_source.py::test_a_message_stays_with_a_slow_consumer",
            ),
            webhook=shown(
                "integration/webhook/test_faults.py::test_a_destination_that_hangs_leaves_the_others_their_share"
            ),
            handlers=shown(
                "faults/test_handlers.py::test_a_handler_that_blocks_the_event_loop_does_not_lose_the_lanes",
                "integration/relay/test_hanging_handlers.py",
                "integration/relay/test_stall.py",
            ),
        ),
    ),
)
