"""Faults of the database, and of the connection to it."""

from tests.fault_matrix.cells import Row, Section, not_applicable, shown

_A_FILE = not_applicable("SQLite is a file, without a server and without a connection")
_OF_THE_DATABASE = not_applicable("a fault of the database; the transport is RabbitMQ or a handler")
_NO_NOTIFY = not_applicable("a feature of PostgreSQL")
_WORKS = ("record", "admit", "count_results")

DATABASES = Section(
    title="Database",
    rows=(
        Row(
            name="database-restart",
            fault="the database is killed (`immediate`) under load, and starts again",
            shows="lost 0; every relay settles afterwards what was confirmed; attempts used up 0",
            postgresql=shown(
                "faults/test_database.py::test_a_database_that_crashes_under_load",
                "faults/test_database.py::test_a_database_that_crashes_while_lanes_change_owners",
            ),
            mariadb=shown(
                "drills/test_mariadb.py::test_a_killed_mariadb_loses_nothing",
                "integration/mariadb/test_relay.py::test_no_committed_event_is_lost_when_the_server_is_killed",
            ),
            sqlite=_A_FILE,
            rabbitmq=_OF_THE_DATABASE,
            kafka=_OF_THE_DATABASE,
            nats=_OF_THE_DATABASE,
            redis=_OF_THE_DATABASE,
            webhook=_OF_THE_DATABASE,
            handlers=_OF_THE_DATABASE,
        ),
        Row(
            name="database-failover",
            fault="the primary is killed under load, and its replica is promoted",
            shows="synchronous: lost 0; asynchronous: the loss is found",
            postgresql=shown(
                "drills/test_failover.py::test_a_synchronous_failover_loses_nothing[postgres-]",
                "drills/test_failover.py::"
                "test_an_asynchronous_failover_loses_what_the_replica_had_not_received[postgres-]",
                "integration/deployment/test_failover.py::test_a_relay_finds_the_primary_and_follows_a_promotion",
            ),
            mariadb=shown(
                "drills/test_failover.py::test_a_synchronous_failover_loses_nothing[mariadb-]",
                "drills/test_failover.py::"
                "test_an_asynchronous_failover_loses_what_the_replica_had_not_received[mariadb-]",
            ),
            sqlite=_A_FILE,
            rabbitmq=_OF_THE_DATABASE,
            kafka=_OF_THE_DATABASE,
            nats=_OF_THE_DATABASE,
            redis=_OF_THE_DATABASE,
            webhook=_OF_THE_DATABASE,
            handlers=_OF_THE_DATABASE,
        ),
        Row(
            name="too-many-connections",
            fault="the database accepts no more connections",
            shows="the relay waits and reconnects; lost 0",
            postgresql=shown(
                "extremes/test_connection_limit.py::test_a_relay_waits_for_a_free_connection[postgres]",
            ),
            mariadb=shown(
                "extremes/test_connection_limit.py::test_a_relay_waits_for_a_free_connection[mariadb]",
            ),
            sqlite=_A_FILE,
            rabbitmq=_OF_THE_DATABASE,
            kafka=_OF_THE_DATABASE,
            nats=_OF_THE_DATABASE,
            redis=_OF_THE_DATABASE,
            webhook=_OF_THE_DATABASE,
            handlers=_OF_THE_DATABASE,
        ),
        Row(
            name="deadlock",
            fault="deadlock (40P01) of a settlement",
            shows="it is repeated; lanes are locked in one order",
            postgresql=shown(
                "integration/postgres/test_deadlocks.py::test_a_settlement_is_repeated_after_a_deadlock",
                "integration/postgres/test_deadlocks.py::test_settlements_lock_lanes_in_one_order",
                "integration/postgres/test_out_of_resources.py::test_settlements_are_retried_and_nothing_is_sent_twice[40P01]",
                "integration/postgres/test_out_of_resources.py::test_fetches_are_retried[40P01]",
            ),
            mariadb=shown(
                "extremes/test_conflicts.py::test_a_producer_that_deadlocks_with_a_settlement",
                "integration/mariadb/test_deadlocks.py::test_a_settlement_is_repeated_after_a_deadlock",
                "integration/mariadb/test_deadlocks.py::test_settlements_lock_lanes_in_one_order",
            ),
            sqlite=not_applicable("SQLite has one writer at a time"),
            rabbitmq=_OF_THE_DATABASE,
            kafka=_OF_THE_DATABASE,
            nats=_OF_THE_DATABASE,
            redis=_OF_THE_DATABASE,
            webhook=_OF_THE_DATABASE,
            handlers=_OF_THE_DATABASE,
        ),
        Row(
            name="serialization-failure",
            fault="serialization failure (40001)",
            shows="producers and consumers get the error of their driver; the relay repeats",
            postgresql=shown(
                "integration/record/test_driver_errors.py::test_a_serialization_failure_is_raised_unchanged",
                "integration/inbox/test_concurrent_duplicates.py::test_a_stale_snapshot_is_a_serialization_failure",
                "integration/postgres/test_out_of_resources.py::test_settlements_are_retried_and_nothing_is_sent_twice[40001]",
                "integration/postgres/test_out_of_resources.py::test_fetches_are_retried[40001]",
            ),
            mariadb=shown(
                *(
                    f"extremes/test_conflicts.py::test_a_stale_snapshot_is_an_error_of_the_driver[strict_mariadb-{work}]"
                    for work in _WORKS
                ),
                "extremes/test_conflicts.py::test_a_relay_repeats_settlements_that_the_server_reports_as_stale",
            ),
            sqlite=shown(
                *(
                    f"extremes/test_conflicts.py::test_a_stale_snapshot_is_an_error_of_the_driver[sqlite-{work}]"
                    for work in _WORKS
                ),
                # A relay begins its writes with the lock of the writer: it meets no stale snapshot.
                "extremes/test_conflicts.py::test_a_relay_waits_for_a_lock_that_is_held_for_too_long[sqlite-file]",
                "integration/record/test_driver_errors.py::test_a_busy_error_of_sqlite_is_raised_unchanged",
                "integration/inbox/test_errors.py::test_a_busy_error_of_sqlite_is_raised_unchanged",
            ),
            rabbitmq=_OF_THE_DATABASE,
            kafka=_OF_THE_DATABASE,
            nats=_OF_THE_DATABASE,
            redis=_OF_THE_DATABASE,
            webhook=_OF_THE_DATABASE,
            handlers=_OF_THE_DATABASE,
        ),
        Row(
            name="lock-timeout",
            fault="lock timeout (55P03): a table or row is locked for too long",
            shows="the relay waits and repeats; lost 0",
            postgresql=shown(
                "integration/relay/test_ledger.py::test_a_locked_ledger_loses_nothing",
                "integration/postgres/test_out_of_resources.py::test_settlements_are_retried_and_nothing_is_sent_twice[55P03]",
                "integration/postgres/test_out_of_resources.py::test_fetches_are_retried[55P03]",
            ),
            mariadb=shown(
                "extremes/test_conflicts.py::test_a_relay_waits_for_a_lock_that_is_held_for_too_long[mariadb-rows]",
                "extremes/test_conflicts.py::test_a_relay_waits_for_a_lock_that_is_held_for_too_long[mariadb-table]",
                "integration/mariadb/test_deadlocks.py::test_a_lock_that_is_held_for_too_long_fails_the_whole_settlement",
            ),
            sqlite=shown(
                "extremes/test_conflicts.py::test_a_relay_waits_for_a_lock_that_is_held_for_too_long[sqlite-file]",
                "integration/sqlite/test_connection.py::test_a_long_writer_makes_the_store_unavailable",
            ),
            rabbitmq=_OF_THE_DATABASE,
            kafka=_OF_THE_DATABASE,
            nats=_OF_THE_DATABASE,
            redis=_OF_THE_DATABASE,
            webhook=_OF_THE_DATABASE,
            handlers=_OF_THE_DATABASE,
        ),
        Row(
            name="commit-lost-producer",
            fault="the reply to the COMMIT of a producer is lost",
            shows="the event is delivered if it was committed, and never if not",
            postgresql=shown(
                "extremes/test_links.py::test_a_producer_whose_commit_is_not_answered[postgres-request]",
                "extremes/test_links.py::test_a_producer_whose_commit_is_not_answered[postgres-reply]",
            ),
            mariadb=shown(
                "extremes/test_links.py::test_a_producer_whose_commit_is_not_answered[mariadb-request]",
                "extremes/test_links.py::test_a_producer_whose_commit_is_not_answered[mariadb-reply]",
            ),
            sqlite=_A_FILE,
            rabbitmq=_OF_THE_DATABASE,
            kafka=_OF_THE_DATABASE,
            nats=_OF_THE_DATABASE,
            redis=_OF_THE_DATABASE,
            webhook=_OF_THE_DATABASE,
            handlers=_OF_THE_DATABASE,
        ),
        Row(
            name="commit-lost-settlement",
            fault="the reply to a settlement is lost",
            shows="wrong outcomes 0, sent again 0, attempts counted once",
            postgresql=shown(
                "extremes/test_links.py::test_a_settlement_whose_answer_is_lost_repeats_nothing[postgres]",
                "conformance/test_postgres.py::TestPostgresStore::test_a_second_settlement_of_one_message_writes_nothing",
            ),
            mariadb=shown(
                "extremes/test_links.py::test_a_settlement_whose_answer_is_lost_repeats_nothing[mariadb]",
                "conformance/test_mariadb.py::TestMariaDBStore::test_a_second_settlement_of_one_message_writes_nothing",
            ),
            sqlite=not_applicable(
                "COMMIT is a call in the process of the relay: its result is lost only with the process"
                " (`relay-killed`), and one that fails has committed nothing (`full-disk`)"
            ),
            rabbitmq=_OF_THE_DATABASE,
            kafka=_OF_THE_DATABASE,
            nats=_OF_THE_DATABASE,
            redis=_OF_THE_DATABASE,
            webhook=_OF_THE_DATABASE,
            handlers=_OF_THE_DATABASE,
        ),
        Row(
            name="full-disk",
            fault="the disk of the database is full",
            shows="the relay waits and says why; after space is freed everything is delivered",
            postgresql=shown(
                "extremes/test_full_disk.py::test_a_full_tablespace_of_postgresql",
                "extremes/test_full_disk.py::test_a_postgresql_that_cannot_write_its_log",
            ),
            mariadb=shown("extremes/test_full_disk.py::test_a_full_disk_under_mariadb"),
            sqlite=shown("extremes/test_full_disk.py::test_a_full_disk_under_sqlite"),
            rabbitmq=_OF_THE_DATABASE,
            kafka=_OF_THE_DATABASE,
            nats=_OF_THE_DATABASE,
            redis=_OF_THE_DATABASE,
            webhook=_OF_THE_DATABASE,
            handlers=_OF_THE_DATABASE,
        ),
        Row(
            name="notify-lost",
            fault="NOTIFY is lost, or the session that listens is terminated",
            shows="the poll finds the event; order kept",
            postgresql=shown(
                "extremes/test_notifications.py::test_events_wait_at_most_for_the_poll_if_notifications_are_lost",
                "faults/test_takeover.py::test_a_relay_whose_session_is_terminated_continues_in_order",
                "integration/postgres/test_wakeup.py::test_a_new_session_takes_the_sleep_lock_again",
                "integration/postgres/test_wakeup.py::test_an_event_committed_after_the_relay_slept_is_delivered",
            ),
            mariadb=_NO_NOTIFY,
            sqlite=_NO_NOTIFY,
            rabbitmq=_OF_THE_DATABASE,
            kafka=_OF_THE_DATABASE,
            nats=_OF_THE_DATABASE,
            redis=_OF_THE_DATABASE,
            webhook=_OF_THE_DATABASE,
            handlers=_OF_THE_DATABASE,
        ),
        Row(
            name="transaction-pooling",
            fault="producers and consumers behind a pooler in transaction mode, which is killed",
            shows="lost 0, effects once",
            postgresql=shown(
                "drills/test_pooler.py::test_a_killed_pooler_and_a_killed_server_behind_it_lose_nothing",
                "integration/record/test_pgbouncer.py::test_records_commit_repeatedly",
                "integration/inbox/test_table_names.py::test_asyncpg_works_behind_a_pooler",
            ),
            mariadb=not_applicable("PgBouncer is for PostgreSQL; no pooler of MariaDB is supported"),
            sqlite=_A_FILE,
            rabbitmq=_OF_THE_DATABASE,
            kafka=_OF_THE_DATABASE,
            nats=_OF_THE_DATABASE,
            redis=_OF_THE_DATABASE,
            webhook=_OF_THE_DATABASE,
            handlers=_OF_THE_DATABASE,
        ),
    ),
)
