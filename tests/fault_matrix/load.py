"""Load, content, limits of the machine, and everything at once."""

from tests.fault_matrix.cells import Row, Section, not_applicable, shown

_OF_THE_STORE = not_applicable("a property of the tables; the transport is RabbitMQ")
_A_FILE = not_applicable("SQLite is a file, without a server that is out of reach")
_REFUSED_BEFORE = not_applicable("refused before it is recorded")
_AT_RECORD = (
    "unit/core/test_event_headers.py::test_control_characters_are_rejected",
    "unit/core/test_event_texts.py::test_control_characters_are_rejected",
)

LOAD = Section(
    title="Load",
    rows=(
        Row(
            name="backlog-of-millions",
            fault="a backlog of millions",
            shows="rows read by a fetch, whatever the depth",
            postgresql=shown(
                "extremes/test_backlogs.py::test_a_million_pending_events_cost_a_fetch_no_more[postgres]",
                "plans/test_reads_and_writes.py::test_a_fetch_of_ready_messages",
                "plans/test_reads_and_writes.py::test_a_fetch_of_due_messages",
            ),
            mariadb=shown(
                "extremes/test_backlogs.py::test_a_million_pending_events_cost_a_fetch_no_more[mariadb]",
                "plans/test_mariadb.py::test_a_fetch_of_ready_messages",
                "plans/test_mariadb.py::test_a_fetch_of_due_messages",
            ),
            sqlite=shown(
                "extremes/test_backlogs.py::test_a_million_pending_events_cost_a_fetch_no_more[sqlite]",
                "integration/sqlite/test_work.py::test_fetches_do_not_scan_the_backlog",
            ),
            rabbitmq=_OF_THE_STORE,
            kafka=_OF_THE_STORE,
            nats=_OF_THE_STORE,
            redis=_OF_THE_STORE,
            webhook=_OF_THE_STORE,
            handlers=_OF_THE_STORE,
        ),
        Row(
            name="blocked-key-100000",
            fault="100,000 events wait for one blocked key",
            shows="rows read by a fetch",
            postgresql=shown(
                "plans/test_reads_and_writes.py::test_a_fetch_from_a_queue_of_100000",
                "plans/test_reads_and_writes.py::test_a_fetch_of_one_lane_whose_key_is_blocked",
            ),
            mariadb=shown(
                "extremes/test_backlogs.py::test_100000_events_behind_a_blocked_key_cost_a_fetch_no_more[mariadb]",
                "plans/test_mariadb.py::test_a_fetch_from_a_queue_of_20000",
            ),
            sqlite=shown(
                "extremes/test_backlogs.py::test_100000_events_behind_a_blocked_key_cost_a_fetch_no_more[sqlite]",
                "integration/sqlite/test_work.py::test_fetching_more_of_a_queue_costs_only_the_batch",
            ),
            rabbitmq=_OF_THE_STORE,
            kafka=_OF_THE_STORE,
            nats=_OF_THE_STORE,
            redis=_OF_THE_STORE,
            webhook=_OF_THE_STORE,
            handlers=_OF_THE_STORE,
        ),
        Row(
            name="long-transaction",
            fault="a transaction stays open, so that delivered rows bloat the table",
            shows="a fetch reads at most three times the pages; lost 0",
            postgresql=shown(
                "extremes/test_bloat.py::test_a_fetch_reads_at_most_three_times_the_pages[postgres]",
                "extremes/test_bloat.py::test_an_event_of_a_long_writer_is_delivered[postgres]",
                "extremes/test_bloat.py::test_nothing_is_lost_and_fetches_recover[postgres]",
                "integration/postgres/test_low_water_marks.py",
            ),
            mariadb=shown(
                "extremes/test_bloat.py::test_a_fetch_reads_at_most_three_times_the_pages[mariadb]",
                "extremes/test_bloat.py::test_an_event_of_a_long_writer_is_delivered[mariadb]",
                "extremes/test_bloat.py::test_nothing_is_lost_and_fetches_recover[mariadb]",
            ),
            sqlite=shown(
                "extremes/test_bloat.py::test_a_fetch_reads_at_most_three_times_the_pages[sqlite]",
                "extremes/test_bloat.py::test_nothing_is_lost_and_fetches_recover[sqlite]",
            ),
            rabbitmq=_OF_THE_STORE,
            kafka=_OF_THE_STORE,
            nats=_OF_THE_STORE,
            redis=_OF_THE_STORE,
            webhook=_OF_THE_STORE,
            handlers=_OF_THE_STORE,
        ),
        Row(
            name="scheduled-1000000",
            fault="1,000,000 scheduled events",
            shows="other events are not delayed; memory does not grow",
            postgresql=shown(
                "extremes/test_backlogs.py::test_a_million_scheduled_events_delay_no_other_event[postgres]"
            ),
            mariadb=shown(
                "extremes/test_backlogs.py::test_a_million_scheduled_events_delay_no_other_event[mariadb]",
                "plans/test_mariadb.py::test_scheduled_events_of_a_key_cost_its_other_events_nothing",
                "plans/test_mariadb.py::test_a_fetch_of_ready_messages",
                "plans/test_mariadb.py::test_a_fetch_of_due_messages",
            ),
            sqlite=shown(
                "extremes/test_backlogs.py::test_a_million_scheduled_events_delay_no_other_event[sqlite]",
                "integration/sqlite/test_work.py::test_fetches_do_not_scan_the_backlog",
            ),
            rabbitmq=_OF_THE_STORE,
            kafka=_OF_THE_STORE,
            nats=_OF_THE_STORE,
            redis=_OF_THE_STORE,
            webhook=_OF_THE_STORE,
            handlers=_OF_THE_STORE,
        ),
        Row(
            name="event-types-50000",
            fault="50,000 event types",
            shows="memory and metrics do not grow; known types flow",
            postgresql=shown("extremes/test_backlogs.py::test_50000_event_types_to_one_place[postgres]"),
            mariadb=shown("extremes/test_backlogs.py::test_50000_event_types_to_one_place[mariadb]"),
            sqlite=shown("extremes/test_backlogs.py::test_50000_event_types_to_one_place[sqlite]"),
            rabbitmq=shown(
                "extremes/test_backlogs.py::test_50000_event_types_to_one_place[rabbitmq]",
                "integration/rabbitmq/test_topology_new_queues.py::test_new_event_types_do_not_delay_known_ones",
                "simulation/test_types.py",
            ),
            kafka=shown("extremes/test_backlogs.py::test_50000_event_types_to_one_place[kafka]"),
            nats=shown("extremes/test_backlogs.py::test_50000_event_types_to_one_place[nats]"),
            redis=shown("extremes/test_backlogs.py::test_50000_event_types_to_one_place[redis]"),
            webhook=shown("extremes/test_backlogs.py::test_50000_event_types_to_one_place[webhook]"),
            handlers=shown("extremes/test_backlogs.py::test_50000_event_types_to_one_place[handlers]"),
        ),
        Row(
            name="everything-at-once",
            fault="everything at once: every kind of fault of a drill that the engines support, at random",
            shows="every guarantee, in a drill of a few minutes; longer runs are in [evidence](evidence.md)",
            postgresql=shown(
                "drills/test_every_fault.py::test_every_fault_at_once[postgresql-rabbitmq]",
                "drills/test_every_fault.py::test_every_fault_at_once[postgresql-redis]",
            ),
            mariadb=shown("drills/test_every_fault.py::test_every_fault_at_once[mariadb-nats]"),
            sqlite=shown(
                "drills/test_every_fault.py::test_every_fault_at_once[sqlite-kafka]",
                "drills/test_every_fault.py::test_every_fault_at_once[sqlite-webhook]",
                "drills/test_every_fault.py::test_every_fault_at_once[sqlite-handlers]",
            ),
            rabbitmq=shown("drills/test_every_fault.py::test_every_fault_at_once[postgresql-rabbitmq]"),
            kafka=shown("drills/test_every_fault.py::test_every_fault_at_once[sqlite-kafka]"),
            nats=shown("drills/test_every_fault.py::test_every_fault_at_once[mariadb-nats]"),
            redis=shown("drills/test_every_fault.py::test_every_fault_at_once[postgresql-redis]"),
            webhook=shown("drills/test_every_fault.py::test_every_fault_at_once[sqlite-webhook]"),
            handlers=shown("drills/test_every_fault.py::test_every_fault_at_once[sqlite-handlers]"),
        ),
        Row(
            name="harness",
            fault="the harness: the relay without epoch, confirm, `mandatory`, lock of the lane, or order of retries",
            shows="every missing guard fails the test",
            postgresql=shown(
                "faults/test_mutations.py::test_without_the_epoch_the_settlement_of_a_stale_relay_is_detected[postgres_url]",
                "faults/test_mutations.py::"
                "test_without_the_lock_on_the_lane_the_settlement_during_a_takeover_is_detected",
                "faults/test_drill.py::test_without_the_fence_the_drill_fails",
            ),
            mariadb=shown(
                "faults/test_mutations.py::test_without_the_epoch_the_settlement_of_a_stale_relay_is_detected[mariadb_url]",
                "extremes/test_mutations.py::test_on_mariadb_lanes_are_not_taken_from_under_a_settlement",
                "extremes/test_mutations.py::"
                "test_on_mariadb_without_the_lock_on_the_lane_the_settlement_during_a_takeover_is_detected",
            ),
            sqlite=shown(
                "faults/test_drill.py::test_without_the_fence_the_drill_fails[sqlite-epoch-stale-settlement]",
                "faults/test_drill.py::test_without_waiting_for_the_confirm_the_drill_fails",
                "faults/test_drill.py::test_without_holding_back_the_next_of_a_key_the_drill_fails",
                "faults/test_drill.py::test_without_mandatory_the_drill_fails",
            ),
            rabbitmq=shown(
                "faults/test_mutations.py::test_without_mandatory_the_loss_is_detected",
                "faults/test_mutations.py::test_without_waiting_for_the_confirm_the_loss_is_detected",
                "faults/test_drill.py::test_without_mandatory_the_drill_fails",
            ),
            kafka=shown(
                "extremes/test_mutations.py::test_a_relay_that_is_killed_during_an_outage_loses_nothing[kafka]",
                "extremes/test_mutations.py::test_without_waiting_for_the_confirm_the_loss_is_detected[kafka]",
            ),
            nats=shown(
                "drills/test_engines.py::test_without_waiting_for_the_confirm_a_drill_on_streams_fails[nats_server-stop]",
            ),
            redis=shown(
                "drills/test_engines.py::test_without_waiting_for_the_confirm_a_drill_on_streams_fails[redis_server-stop]",
            ),
            webhook=shown(
                "extremes/test_mutations.py::test_a_relay_that_is_killed_during_an_outage_loses_nothing[webhook]",
                "extremes/test_mutations.py::test_without_waiting_for_the_confirm_the_loss_is_detected[webhook]",
            ),
            handlers=shown(
                "faults/test_mutations.py::test_without_holding_back_the_next_of_a_key_overtaking_is_detected",
                "faults/test_drill.py::test_without_waiting_for_the_confirm_the_drill_fails",
            ),
        ),
    ),
)

CONTENT = Section(
    title="Content",
    rows=(
        Row(
            name="strange-texts",
            fault="NUL, invalid UTF-8, lone surrogates",
            shows="bytes in = bytes out, or rejected at record time",
            postgresql=shown(
                "integration/relay/test_any_row.py::"
                "test_any_row_in_postgresql_reaches_an_outcome_without_affecting_others",
                "conformance/test_postgres.py::TestPostgresStore::test_payload_bytes_are_unchanged",
            ),
            mariadb=shown(
                "integration/mariadb/test_any_row.py::test_any_row_reaches_an_outcome_without_affecting_others",
                "conformance/test_mariadb.py::TestMariaDBStore::test_payload_bytes_are_unchanged",
            ),
            sqlite=shown(
                "integration/relay/test_any_row.py::test_any_row_in_sqlite_reaches_an_outcome_without_affecting_others",
                "conformance/test_sqlite.py::TestSqliteStore::test_payload_bytes_are_unchanged",
                "integration/sqlite/test_shell_producer.py::test_invalid_utf8_does_not_affect_other_events",
            ),
            rabbitmq=shown(
                "conformance/test_rabbitmq.py::TestRabbitMQ::test_bytes_are_unchanged",
                "integration/consume/test_any_message.py",
            ),
            kafka=shown(
                "conformance/test_kafka.py::TestKafka::test_bytes_are_unchanged",
                "integration/kafka/test_transport_records.py::test_a_text_that_kafka_cannot_hold_fails_permanently",
            ),
            nats=shown(
                "conformance/test_nats.py::TestNats::test_bytes_are_unchanged",
                "integration/nats/test_publisher.py::test_a_header_that_is_not_unicode_fails_permanently_and_alone",
            ),
            redis=shown(
                "conformance/test_redis.py::TestRedis::test_bytes_are_unchanged",
                "integration/redis/test_transport_refused.py::test_text_that_is_not_utf8_fails_alone",
            ),
            webhook=shown("conformance/test_webhook.py::TestWebhook::test_bytes_are_unchanged"),
            handlers=shown(
                "conformance/test_handlers.py::TestAsyncHandlers::test_bytes_are_unchanged",
                "conformance/test_handlers.py::TestSyncHandlers::test_bytes_are_unchanged",
                "unit/transports/test_received_event.py",
            ),
        ),
        Row(
            name="line-breaks",
            fault="CR and LF in headers, subjects and keys",
            shows="rejected at record time with a clear error",
            postgresql=shown(*_AT_RECORD),
            mariadb=shown(
                *_AT_RECORD,
                "integration/mariadb/test_bad_rows.py::test_the_table_rejects_what_a_relay_could_not_send",
            ),
            sqlite=shown(
                *_AT_RECORD,
                "integration/sqlite/test_bad_rows.py::test_a_row_that_cannot_be_settled_is_rejected_by_the_insert",
            ),
            rabbitmq=_REFUSED_BEFORE,
            kafka=_REFUSED_BEFORE,
            nats=shown(
                "integration/nats/test_publisher.py::test_values_of_an_event_cannot_leave_their_place_in_the_subject",
                "integration/nats/test_publisher.py::"
                "test_headers_of_a_producer_do_not_command_the_server_nor_replace_ours",
            ),
            redis=_REFUSED_BEFORE,
            webhook=shown(
                "conformance/test_webhook.py::TestWebhook::"
                "test_a_message_that_can_never_be_sent_fails_permanently_and_alone",
                "integration/webhook/test_requests.py::test_headers_of_an_event_replace_no_header_of_the_request",
            ),
            handlers=_REFUSED_BEFORE,
        ),
        Row(
            name="payload-10-mb",
            fault="payloads of 5 to 10 MB",
            shows="bytes in = bytes out",
            postgresql=shown("extremes/test_payloads.py::test_10_mb_from_every_store[postgres]"),
            mariadb=shown("extremes/test_payloads.py::test_10_mb_from_every_store[roomy_mariadb]"),
            sqlite=shown("extremes/test_payloads.py::test_10_mb_from_every_store[sqlite]"),
            rabbitmq=shown("extremes/test_payloads.py::test_10_mb_from_every_store[postgres]"),
            kafka=shown(
                "extremes/test_payloads.py::test_10_mb_to_kafka", "extremes/test_payloads.py::test_4_mb_to_kafka"
            ),
            nats=shown("extremes/test_payloads.py::test_10_mb_to_nats"),
            redis=shown("extremes/test_payloads.py::test_10_mb_to_redis"),
            webhook=shown("extremes/test_payloads.py::test_10_mb_to_a_webhook"),
            handlers=shown(
                "extremes/test_payloads.py::test_10_mb_to_handlers_in_the_process_of_the_relay",
            ),
        ),
        Row(
            name="payload-200-mb",
            fault="payloads of 200 MB",
            shows="refused at record time, and by the table",
            postgresql=shown(
                "extremes/test_payloads.py::test_200_mb_are_refused_at_record[postgres-1 MiB]",
                "extremes/test_payloads.py::test_200_mb_are_refused_at_record[postgres-64 MiB]",
                "extremes/test_payloads.py::test_200_mb_of_plain_sql_are_refused_by_the_table[postgres-1 MiB]",
                "extremes/test_payloads.py::test_200_mb_of_plain_sql_are_refused_by_the_table[postgres-64 MiB]",
            ),
            mariadb=shown(
                "extremes/test_payloads.py::test_200_mb_are_refused_at_record[mariadb-1 MiB]",
                "extremes/test_payloads.py::test_200_mb_are_refused_at_record[mariadb-64 MiB]",
                "extremes/test_payloads.py::test_200_mb_of_plain_sql_are_refused_by_the_table[roomy_mariadb-64 MiB]",
                "extremes/test_payloads.py::test_200_mb_of_plain_sql_are_refused_by_the_packet_limit_of_mariadb",
            ),
            sqlite=shown(
                "extremes/test_payloads.py::test_200_mb_are_refused_at_record[sqlite-1 MiB]",
                "extremes/test_payloads.py::test_200_mb_are_refused_at_record[sqlite-64 MiB]",
                "extremes/test_payloads.py::test_200_mb_of_plain_sql_are_refused_by_the_table[sqlite-1 MiB]",
                "extremes/test_payloads.py::test_200_mb_of_plain_sql_are_refused_by_the_table[sqlite-64 MiB]",
            ),
            rabbitmq=_REFUSED_BEFORE,
            kafka=_REFUSED_BEFORE,
            nats=_REFUSED_BEFORE,
            redis=_REFUSED_BEFORE,
            webhook=_REFUSED_BEFORE,
            handlers=_REFUSED_BEFORE,
        ),
    ),
)

MACHINE = Section(
    title="Limits of the machine",
    rows=(
        Row(
            name="few-descriptors",
            fault="a low limit on file descriptors",
            shows="the relay works, or names the limit and continues later; lost 0",
            postgresql=shown(
                "extremes/test_limits.py::test_a_relay_that_starts_with_few_files[postgres]",
                "extremes/test_limits.py::test_a_relay_that_has_no_free_file_after_an_outage[postgres]",
            ),
            mariadb=shown(
                "extremes/test_limits.py::test_a_relay_that_starts_with_few_files[mariadb]",
                "extremes/test_limits.py::test_a_relay_that_has_no_free_file_after_an_outage[mariadb]",
            ),
            sqlite=shown("extremes/test_limits.py::test_a_relay_that_starts_with_few_files[sqlite]"),
            rabbitmq=shown("extremes/test_limits.py::test_a_relay_that_has_no_free_file_after_an_outage[rabbitmq]"),
            kafka=shown("extremes/test_limits.py::test_a_relay_that_has_no_free_file_after_an_outage[kafka]"),
            nats=shown("extremes/test_limits.py::test_a_relay_that_has_no_free_file_after_an_outage[nats]"),
            redis=shown("extremes/test_limits.py::test_a_relay_that_has_no_free_file_after_an_outage[redis]"),
            webhook=shown("extremes/test_limits.py::test_a_relay_that_has_no_free_file_after_an_outage[webhook]"),
            handlers=shown("extremes/test_limits.py::test_a_relay_that_has_no_free_file_after_an_outage[handlers]"),
        ),
        Row(
            name="little-memory",
            fault="a low limit on memory; a backlog of large events",
            shows="memory bounded in bytes; the next relay continues; lost 0",
            postgresql=shown(
                "extremes/test_limits.py::test_relays_with_too_little_memory_lose_nothing_and_the_next_one_continues[postgres]",
                "extremes/test_limits.py::test_memory_stays_bounded_with_a_backlog_of_large_events[postgres]",
            ),
            mariadb=shown(
                "extremes/test_limits.py::test_relays_with_too_little_memory_lose_nothing_and_the_next_one_continues[mariadb]",
                "extremes/test_limits.py::test_memory_stays_bounded_with_a_backlog_of_large_events[mariadb]",
            ),
            sqlite=shown(
                "extremes/test_limits.py::test_relays_with_too_little_memory_lose_nothing_and_the_next_one_continues[sqlite]",
                "extremes/test_limits.py::test_memory_stays_bounded_with_a_backlog_of_large_events[sqlite]",
            ),
            rabbitmq=shown(
                "extremes/test_limits.py::test_relays_with_too_little_memory_lose_nothing_and_the_next_one_continues[rabbitmq]",
                "extremes/test_limits.py::test_memory_stays_bounded_with_a_backlog_of_large_events[rabbitmq]",
            ),
            kafka=shown(
                "extremes/test_limits.py::test_relays_with_too_little_memory_lose_nothing_and_the_next_one_continues[kafka]",
                "extremes/test_limits.py::test_memory_stays_bounded_with_a_backlog_of_large_events[kafka]",
            ),
            nats=shown(
                "extremes/test_limits.py::test_relays_with_too_little_memory_lose_nothing_and_the_next_one_continues[nats]",
                "extremes/test_limits.py::test_memory_stays_bounded_with_a_backlog_of_large_events[nats]",
            ),
            redis=shown(
                "extremes/test_limits.py::test_relays_with_too_little_memory_lose_nothing_and_the_next_one_continues[redis]",
                "extremes/test_limits.py::test_memory_stays_bounded_with_a_backlog_of_large_events[redis]",
            ),
            webhook=shown(
                "extremes/test_limits.py::test_relays_with_too_little_memory_lose_nothing_and_the_next_one_continues[webhook]",
                "extremes/test_limits.py::test_memory_stays_bounded_with_a_backlog_of_large_events[webhook]",
            ),
            handlers=shown(
                "extremes/test_limits.py::test_relays_with_too_little_memory_lose_nothing_and_the_next_one_continues[handlers]",
                "extremes/test_limits.py::test_memory_stays_bounded_with_a_backlog_of_large_events[handlers]",
            ),
        ),
        Row(
            name="outage-cpu",
            fault="CPU of a relay during an outage",
            shows="under 5 %: no hot loop",
            postgresql=shown(
                "extremes/test_outages.py::test_a_relay_is_idle_during_an_outage[postgres-down]",
                "extremes/test_outages.py::test_a_relay_is_idle_during_an_outage[postgres-hole]",
            ),
            mariadb=shown(
                "extremes/test_outages.py::test_a_relay_is_idle_during_an_outage[mariadb-down]",
                "extremes/test_outages.py::test_a_relay_is_idle_during_an_outage[mariadb-hole]",
            ),
            sqlite=_A_FILE,
            rabbitmq=shown(
                "extremes/test_outages.py::test_a_relay_is_idle_during_an_outage[rabbitmq-down]",
                "extremes/test_outages.py::test_a_relay_is_idle_during_an_outage[rabbitmq-hole]",
            ),
            kafka=shown(
                "extremes/test_outages.py::test_a_relay_is_idle_during_an_outage[kafka-down]",
                "extremes/test_outages.py::test_a_relay_is_idle_during_an_outage[kafka-hole]",
            ),
            nats=shown(
                "extremes/test_outages.py::test_a_relay_is_idle_during_an_outage[nats-down]",
                "extremes/test_outages.py::test_a_relay_is_idle_during_an_outage[nats-hole]",
            ),
            redis=shown(
                "extremes/test_outages.py::test_a_relay_is_idle_during_an_outage[redis-down]",
                "extremes/test_outages.py::test_a_relay_is_idle_during_an_outage[redis-hole]",
            ),
            webhook=shown(
                "extremes/test_outages.py::test_a_relay_is_idle_during_an_outage[webhook-down]",
                "extremes/test_outages.py::test_a_relay_is_idle_during_an_outage[webhook-hole]",
            ),
            handlers=not_applicable("handlers have no outage of a connection"),
        ),
        Row(
            name="baseline",
            fault="connections, files, tasks, threads and memory after faults",
            shows="back to the baseline",
            postgresql=shown(
                "extremes/test_outages.py::test_everything_is_given_back_after_outages[postgres]",
                "integration/relay/test_resources.py::test_connections_and_messages_in_flight_do_not_grow_with_the_backlog",
            ),
            mariadb=shown(
                "extremes/test_outages.py::test_everything_is_given_back_after_outages[mariadb]",
            ),
            sqlite=shown(
                "extremes/test_outages.py::test_everything_is_given_back_after_outages[sqlite]",
            ),
            rabbitmq=shown(
                "extremes/test_outages.py::test_everything_is_given_back_after_outages[rabbitmq]",
                "integration/rabbitmq/test_connection.py::test_a_cancelled_send_affects_no_other_and_leaves_nothing_open",
            ),
            kafka=shown(
                "extremes/test_outages.py::test_everything_is_given_back_after_outages[kafka]",
                "integration/kafka/test_source.py::test_nothing_runs_after_the_close",
            ),
            nats=shown(
                "extremes/test_outages.py::test_everything_is_given_back_after_outages[nats]",
                "integration/nats/test_outage.py::test_a_lost_connection_fails_what_is_unconfirmed_and_keeps_no_task",
            ),
            redis=shown(
                "extremes/test_outages.py::test_everything_is_given_back_after_outages[redis]",
                "integration/redis/test_source.py::test_a_closed_source_leaves_no_consumer_behind",
            ),
            webhook=shown(
                "extremes/test_outages.py::test_everything_is_given_back_after_outages[webhook]",
                "integration/webhook/test_faults.py::test_cancelled_requests_leave_their_connections_to_others",
            ),
            handlers=shown(
                "extremes/test_outages.py::test_everything_is_given_back_after_outages[handlers]",
                "unit/transports/test_handler_shutdown.py::test_threads_end_after_closing",
            ),
        ),
    ),
)
