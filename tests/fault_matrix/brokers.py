"""Faults of the broker or receiver, and what it answers."""

from tests.fault_matrix.cells import Row, Section, not_applicable, shown, untestable

_OF_THE_BROKER = not_applicable("a fault of the transport; the store is PostgreSQL")
_NO_SERVER = not_applicable("handlers run in the process of the relay")
_NO_ALARM = not_applicable("an alarm of RabbitMQ")
_ONE_RESPONSE = not_applicable("each request has its own response")
_ONE_CALL = not_applicable("the result of a call is its return")
_REPLIES_IN_ORDER = not_applicable("Redis replies in the order of the commands")
_NO_NODES = not_applicable("has no nodes")

BROKERS = Section(
    title="Broker",
    rows=(
        Row(
            name="broker-killed",
            fault="the broker is stopped or killed under load, and starts again",
            shows="lost 0, duplicates ≤ in flight, attempts used up 0",
            postgresql=_OF_THE_BROKER,
            mariadb=_OF_THE_BROKER,
            sqlite=_OF_THE_BROKER,
            rabbitmq=shown(
                "faults/test_broker.py::test_a_stopped_broker_uses_up_no_attempts",
                "faults/test_broker.py::test_a_killed_broker_uses_up_no_attempts",
                "integration/rabbitmq/test_connection_outage.py::test_a_killed_broker_loses_nothing_that_it_accepted",
                "drills/test_two_destinations.py::test_a_broker_that_is_down_for_a_minute_delays_only_its_own_events[rabbitmq]",
            ),
            kafka=shown(
                "extremes/test_kafka.py::test_brokers_that_are_all_down_under_load_lose_nothing",
                "integration/kafka/test_relay.py::test_events_reach_the_inbox_once_and_in_order_through_an_outage",
            ),
            nats=shown(
                "integration/nats/test_outage.py::test_a_killed_server_loses_and_reorders_nothing_that_it_accepted",
                "integration/nats/test_source.py::test_events_reach_the_inbox_once_and_in_order_of_their_key_through_outages",
                "drills/test_two_destinations.py::test_a_broker_that_is_down_for_a_minute_delays_only_its_own_events[nats]",
            ),
            redis=shown(
                "integration/redis/test_relay.py::test_first_deliveries_stay_in_order_when_the_server_is_killed",
                "integration/redis/test_transport_lost.py::test_no_accepted_message_is_lost_when_the_server_is_killed",
            ),
            webhook=shown(
                "integration/webhook/test_relay.py::test_nothing_accepted_is_lost_when_the_receiver_is_killed",
                "integration/webhook/test_relay.py::test_an_outage_is_waited_for_and_costs_no_attempt",
            ),
            handlers=_NO_SERVER,
        ),
        Row(
            name="cut-broker-drill",
            fault="the broker is cut off during a drill, among other faults",
            shows="every guarantee of the drill",
            postgresql=_OF_THE_BROKER,
            mariadb=_OF_THE_BROKER,
            sqlite=_OF_THE_BROKER,
            rabbitmq=shown("drills/test_clusters.py::test_a_killed_leader_and_a_killed_follower_lose_nothing"),
            kafka=shown("drills/test_engines.py::test_a_drill_on_kafka_passes"),
            nats=shown(
                "drills/test_engines.py::test_a_drill_on_streams_passes[nats_server]",
                "drills/test_nats_cluster.py::test_a_killed_leader_and_a_killed_follower_lose_nothing",
            ),
            redis=shown("drills/test_engines.py::test_a_drill_on_streams_passes[redis_server]"),
            webhook=not_applicable("a drill has no webhook target"),
            handlers=_NO_SERVER,
        ),
        Row(
            name="cluster-node-killed",
            fault="the leader and a follower of a cluster of three are killed under load",
            shows="lost 0, duplicates ≤ in flight",
            postgresql=_OF_THE_BROKER,
            mariadb=_OF_THE_BROKER,
            sqlite=_OF_THE_BROKER,
            rabbitmq=shown(
                "drills/test_clusters.py::test_a_killed_leader_and_a_killed_follower_lose_nothing",
                "integration/deployment/test_failover.py::test_transport_and_source_move_to_another_node_and_back",
            ),
            kafka=shown(
                "extremes/test_kafka.py::test_a_leader_that_is_down_is_replaced_by_another_broker",
                "extremes/test_kafka.py::test_one_broker_that_is_down_under_load_loses_nothing",
                "integration/kafka/test_several_brokers.py::test_a_broker_that_is_down_in_the_middle_of_a_batch_delays_its_partitions",
            ),
            nats=shown(
                "drills/test_nats_cluster.py::test_a_killed_leader_and_a_killed_follower_lose_nothing",
                "integration/nats/test_outage.py::test_a_cluster_whose_leader_is_killed_loses_nothing_and_stores_nothing_twice",
                "integration/nats/test_outage.py::test_what_holds_of_a_batch_during_which_the_leader_is_killed",
            ),
            redis=shown(
                "extremes/test_redis_failover.py::test_a_killed_replica_and_a_killed_master_lose_nothing",
                "integration/redis/test_transport_refused.py::"
                "test_after_a_failover_it_connects_again_instead_of_staying_with_the_old_master",
            ),
            webhook=_NO_NODES,
            handlers=_NO_NODES,
        ),
        Row(
            name="cluster-partition",
            fault="a node of a cluster is cut off from the others",
            shows="lost 0; the minority accepts nothing that is lost",
            postgresql=shown(
                "drills/test_primary_partitions.py::test_a_postgresql_primary_that_is_cut_off_loses_nothing"
            ),
            mariadb=shown("drills/test_primary_partitions.py::test_a_mariadb_primary_that_is_cut_off_loses_nothing"),
            sqlite=_NO_NODES,
            rabbitmq=shown(
                "drills/test_partitions.py::test_a_minority_that_is_cut_off_loses_nothing",
                "drills/test_partitions.py::test_clients_that_know_only_the_minority_recover_with_it",
                "integration/rabbitmq/test_connection_nodes.py::test_a_node_that_confirms_nothing_is_left_for_the_next_one",
            ),
            kafka=untestable("the mock cluster has no replicas, and no traffic between its brokers"),
            nats=shown(
                "extremes/test_partitions.py::test_a_nats_server_that_is_cut_off_loses_nothing",
                "integration/nats/test_connection.py::test_a_server_without_jetstream_is_left_for_the_next_one",
            ),
            redis=shown(
                "extremes/test_redis_failover.py::"
                "test_a_master_that_is_cut_off_from_its_replicas_accepts_nothing_that_is_lost",
                "integration/redis/test_transport_refused.py::"
                "test_a_master_without_its_replicas_is_left_for_the_one_that_its_name_leads_to",
            ),
            webhook=_NO_NODES,
            handlers=_NO_NODES,
        ),
        Row(
            name="certificate-expired",
            fault="the certificate of a server expires under load, and is replaced",
            shows="lost 0, attempts used up 0",
            postgresql=shown(
                "drills/test_certificates.py::test_certificates_that_expire_and_are_replaced_lose_nothing[rabbitmq-postgresql]"
            ),
            mariadb=shown(
                "drills/test_certificates.py::test_certificates_that_expire_and_are_replaced_lose_nothing[nats-mariadb]"
            ),
            sqlite=not_applicable("a file has no certificate"),
            rabbitmq=shown(
                "drills/test_certificates.py::test_certificates_that_expire_and_are_replaced_lose_nothing[rabbitmq-postgresql]"
            ),
            kafka=untestable("the mock cluster has no TLS"),
            nats=shown(
                "drills/test_certificates.py::test_certificates_that_expire_and_are_replaced_lose_nothing[nats-mariadb]"
            ),
            redis=shown(
                "drills/test_certificates.py::test_certificates_that_expire_and_are_replaced_lose_nothing[redis-postgresql]"
            ),
            webhook=shown(
                "extremes/test_webhook_certificate.py::test_a_certificate_that_expires_and_is_replaced_loses_nothing"
            ),
            handlers=_NO_SERVER,
        ),
        Row(
            name="memory-alarm",
            fault="the broker is out of memory (`connection.blocked`, `OOM`)",
            shows="events wait, attempts used up 0",
            postgresql=_OF_THE_BROKER,
            mariadb=_OF_THE_BROKER,
            sqlite=_OF_THE_BROKER,
            rabbitmq=shown("faults/test_broker.py::test_the_relay_waits_out_a_memory_alarm"),
            kafka=_NO_ALARM,
            nats=shown(
                "extremes/test_full_brokers.py::test_a_full_account_of_nats[memory]",
                "integration/nats/test_publisher.py::test_a_full_account_nacks_messages_until_it_has_room",
            ),
            redis=shown(
                "integration/redis/test_relay.py::"
                "test_an_event_that_is_refused_for_lack_of_memory_is_sent_again_before_later_ones_of_its_key",
                "integration/redis/test_transport_refused.py::"
                "test_out_of_memory_refuses_messages_for_now_and_stores_exactly_the_accepted_ones",
            ),
            webhook=_NO_ALARM,
            handlers=_NO_ALARM,
        ),
        Row(
            name="disk-alarm",
            fault="the disk of the broker is full (`connection.blocked`)",
            shows="events wait, attempts used up 0",
            postgresql=_OF_THE_BROKER,
            mariadb=_OF_THE_BROKER,
            sqlite=_OF_THE_BROKER,
            rabbitmq=shown(
                "faults/test_broker.py::test_the_relay_waits_out_a_disk_alarm",
                "integration/rabbitmq/test_connection_blocked.py::test_an_alarm_and_its_end_are_noticed",
            ),
            kafka=untestable("the mock cluster keeps its logs in memory; a broker whose disk is full ends"),
            nats=shown("extremes/test_full_brokers.py::test_a_full_disk_under_nats"),
            redis=shown(
                "extremes/test_full_brokers.py::test_a_full_disk_under_redis",
                "extremes/test_full_brokers.py::test_a_full_disk_ends_a_redis_that_syncs_always",
                "integration/redis/test_transport_refused.py::test_a_server_that_cannot_persist_is_unavailable",
            ),
            webhook=_NO_ALARM,
            handlers=_NO_ALARM,
        ),
        Row(
            name="confirms-late",
            fault="confirms are late",
            shows="unavailable after the timeout, not sooner while there is progress",
            postgresql=_OF_THE_BROKER,
            mariadb=_OF_THE_BROKER,
            sqlite=_OF_THE_BROKER,
            rabbitmq=shown(
                "integration/rabbitmq/test_connection.py::"
                "test_a_broker_that_does_not_confirm_in_time_is_unavailable_and_its_connection_dropped",
                "integration/rabbitmq/test_connection_slow.py::test_a_send_that_makes_progress_is_not_timed_out",
                "extremes/test_links.py::test_a_slow_link_repeats_nothing[rabbitmq-delay]",
            ),
            kafka=shown(
                "extremes/test_kafka.py::test_late_confirms_are_waited_for",
                "extremes/test_kafka.py::test_lost_confirms_are_sent_again",
                "integration/kafka/test_transport_topics.py::"
                "test_a_closed_transport_reports_what_the_broker_never_confirmed",
            ),
            nats=shown(
                "integration/nats/test_publisher.py::test_sends_in_flight_do_not_wait_for_one_that_stalls",
                "extremes/test_links.py::test_a_slow_link_repeats_nothing[nats-delay]",
            ),
            redis=shown(
                "integration/redis/test_transport_lost.py::"
                "test_a_server_that_does_not_reply_is_unavailable_after_the_timeout",
                "extremes/test_links.py::test_a_slow_link_repeats_nothing[redis-delay]",
            ),
            webhook=shown(
                "integration/webhook/test_faults.py::"
                "test_a_receiver_that_does_not_respond_is_an_outage_after_the_timeout",
                "integration/webhook/test_faults.py::test_a_slow_receiver_does_not_delay_the_results_of_others",
            ),
            handlers=shown(
                "unit/transports/test_handler_timeouts.py::test_a_slow_handler_does_not_affect_others_in_its_batch",
                "integration/relay/test_hanging_handlers.py::test_the_result_of_a_call_does_not_wait_for_others",
            ),
        ),
        Row(
            name="confirms-lost",
            fault="confirms are lost",
            shows="sent again with the same id; duplicates ≤ in flight",
            postgresql=_OF_THE_BROKER,
            mariadb=_OF_THE_BROKER,
            sqlite=_OF_THE_BROKER,
            rabbitmq=shown("extremes/test_links.py::test_lost_confirms_are_sent_again"),
            kafka=shown(
                "extremes/test_kafka.py::test_lost_confirms_are_sent_again",
                "integration/kafka/test_transport_order.py::"
                "test_an_outage_in_the_middle_loses_repeats_and_reorders_nothing",
            ),
            nats=shown(
                "integration/nats/test_publisher.py::"
                "test_a_message_without_a_confirmation_is_unavailable_and_stored_once_when_sent_again"
            ),
            redis=shown(
                "integration/redis/test_transport_lost.py::"
                "test_messages_without_a_reply_have_one_result_each_and_are_not_sent_again"
            ),
            webhook=shown(
                "integration/webhook/test_faults.py::test_a_connection_without_a_whole_response_is_an_outage",
                "integration/webhook/test_relay.py::test_each_event_has_its_effect_once_through_the_inbox",
            ),
            handlers=_ONE_CALL,
        ),
        Row(
            name="confirms-negative",
            fault="negative confirms",
            shows="only the refused messages are sent again",
            postgresql=_OF_THE_BROKER,
            mariadb=_OF_THE_BROKER,
            sqlite=_OF_THE_BROKER,
            rabbitmq=shown(
                "integration/rabbitmq/test_confirms.py::test_a_full_queue_nacks_and_keeps_exactly_what_was_accepted",
                "integration/rabbitmq/test_transport_pipelined.py::"
                "test_a_nacked_event_arrives_after_its_batch_and_before_all_others",
            ),
            kafka=shown(
                "integration/kafka/test_transport_order.py::"
                "test_a_refused_message_in_the_middle_fails_alone_and_the_others_stay_in_order",
                "extremes/test_kafka.py::test_what_a_broker_in_trouble_refuses_is_sent_again",
            ),
            nats=shown("integration/nats/test_publisher.py::test_a_full_stream_nacks_the_messages_that_do_not_fit"),
            redis=shown(
                "integration/redis/test_transport_refused.py::"
                "test_out_of_memory_refuses_messages_for_now_and_stores_exactly_the_accepted_ones"
            ),
            webhook=shown("integration/webhook/test_requests.py::test_a_status_decides_on_the_result"),
            handlers=shown("unit/transports/test_handler_results.py::test_a_failure_affects_only_its_own_event"),
        ),
        Row(
            name="confirms-out-of-order",
            fault="confirms out of order, and for several messages at once (`multiple`)",
            shows="tags resolved wrongly 0",
            postgresql=_OF_THE_BROKER,
            mariadb=_OF_THE_BROKER,
            sqlite=_OF_THE_BROKER,
            rabbitmq=shown("unit/transports/rabbitmq/test_confirms.py", "unit/transports/rabbitmq/test_publisher.py"),
            kafka=not_applicable("librdkafka matches the confirms"),
            nats=shown("extremes/test_confirm_order.py::test_confirms_in_reverse_order_are_those_of_their_messages"),
            redis=_REPLIES_IN_ORDER,
            webhook=_ONE_RESPONSE,
            handlers=_ONE_CALL,
        ),
        Row(
            name="unroutable",
            fault="unroutable: the queue is unbound under load, or there is none",
            shows="silent losses 0, neighbours affected 0",
            postgresql=_OF_THE_BROKER,
            mariadb=_OF_THE_BROKER,
            sqlite=_OF_THE_BROKER,
            rabbitmq=shown(
                "faults/test_broker.py::test_a_queue_unbound_under_load_loses_nothing",
                "integration/rabbitmq/test_confirms.py::"
                "test_an_unroutable_message_is_rejected_and_its_neighbours_are_not",
            ),
            kafka=shown(
                "integration/kafka/test_relay.py::test_a_missing_topic_defers_its_own_events_and_dead_letters_none"
            ),
            nats=shown(
                "integration/nats/test_publisher.py::test_a_subject_without_a_stream_is_unavailable_and_harms_no_other",
                "integration/relay/test_one_address.py",
            ),
            redis=shown(
                "integration/redis/test_transport_refused.py::"
                "test_a_deleted_stream_is_created_again_only_if_the_address_says_so",
                "conformance/test_redis.py::TestRedis::test_the_neighbours_of_an_unroutable_message_arrive",
            ),
            webhook=shown(
                "conformance/test_webhook.py::TestWebhook::test_the_neighbours_of_an_unroutable_message_arrive"
            ),
            handlers=shown("unit/transports/test_handler_results.py::test_an_unknown_handler_is_rejected_and_retried"),
        ),
        Row(
            name="queue-full",
            fault="queue or stream full, with reject-publish",
            shows="what was refused is sent again; lost 0",
            postgresql=_OF_THE_BROKER,
            mariadb=_OF_THE_BROKER,
            sqlite=_OF_THE_BROKER,
            rabbitmq=shown(
                "extremes/test_full_brokers.py::test_a_full_queue_of_rabbitmq",
                "integration/rabbitmq/test_confirms.py::test_a_full_queue_nacks_and_keeps_exactly_what_was_accepted",
            ),
            kafka=not_applicable("a topic deletes its oldest messages"),
            nats=shown(
                "extremes/test_full_brokers.py::test_a_full_stream_of_nats",
                "extremes/test_full_brokers.py::test_a_full_account_of_nats[file]",
                "integration/nats/test_publisher.py::test_a_full_stream_nacks_the_messages_that_do_not_fit",
            ),
            redis=shown(
                "integration/redis/test_relay.py::"
                "test_an_event_that_is_refused_for_lack_of_memory_is_sent_again_before_later_ones_of_its_key"
            ),
            webhook=shown("integration/webhook/test_relay.py::test_the_wait_that_a_receiver_asks_for_is_kept"),
            handlers=shown(
                "unit/transports/test_handler_shares.py::test_a_handler_that_hangs_leaves_the_others_their_share"
            ),
        ),
        Row(
            name="exchange-missing",
            fault="exchange, topic, subject or stream missing or deleted",
            shows="silent losses 0; other destinations flow",
            postgresql=_OF_THE_BROKER,
            mariadb=_OF_THE_BROKER,
            sqlite=_OF_THE_BROKER,
            rabbitmq=shown(
                "integration/rabbitmq/test_transport_refused.py::"
                "test_a_missing_exchange_is_an_outage_of_that_destination_only"
            ),
            kafka=shown(
                "integration/kafka/test_relay.py::test_a_missing_topic_defers_its_own_events_and_dead_letters_none",
                "integration/kafka/test_transport_topics.py::test_a_topic_that_does_not_exist_is_unavailable_and_named",
            ),
            nats=shown("integration/nats/test_publisher.py::test_a_stream_that_was_deleted_is_created_again"),
            redis=shown(
                "integration/redis/test_transport_refused.py::"
                "test_a_deleted_stream_is_created_again_only_if_the_address_says_so"
            ),
            webhook=shown(
                "integration/webhook/test_relay.py::"
                "test_a_receiver_that_is_gone_is_paused_until_an_operator_resumes_it",
                "integration/webhook/test_faults.py::test_a_host_without_an_address_is_an_outage",
            ),
            handlers=shown("unit/transports/test_handler_results.py::test_an_unknown_handler_is_rejected_and_retried"),
        ),
        Row(
            name="permission-denied",
            fault="permission denied",
            shows="silent losses 0; other destinations flow",
            postgresql=_OF_THE_BROKER,
            mariadb=_OF_THE_BROKER,
            sqlite=_OF_THE_BROKER,
            rabbitmq=shown(
                "integration/rabbitmq/test_transport_refused.py::"
                "test_an_exchange_without_write_access_is_an_outage_of_that_destination_only"
            ),
            kafka=shown(
                "integration/kafka/test_transport_topics.py::test_a_forbidden_topic_is_unavailable_and_harms_no_other"
            ),
            nats=shown(
                "integration/nats/test_connection.py::"
                "test_a_subject_that_a_user_may_not_publish_to_is_unavailable_at_once_and_alone"
            ),
            redis=shown(
                "integration/redis/test_transport_refused.py::"
                "test_a_user_without_permission_for_one_stream_can_send_to_another"
            ),
            webhook=shown(
                "integration/webhook/test_requests.py::test_a_status_decides_on_the_result[401-RejectedError]"
            ),
            handlers=not_applicable("handlers have no permissions"),
        ),
        Row(
            name="message-too-large",
            fault="a message over the limit of the broker",
            shows="it fails permanently and alone",
            postgresql=_OF_THE_BROKER,
            mariadb=_OF_THE_BROKER,
            sqlite=_OF_THE_BROKER,
            rabbitmq=shown(
                "integration/rabbitmq/test_transport_refused.py::"
                "test_a_message_over_the_size_limit_fails_permanently_and_alone"
            ),
            kafka=shown(
                "integration/kafka/test_transport_order.py::"
                "test_a_refused_message_in_the_middle_fails_alone_and_the_others_stay_in_order"
            ),
            nats=shown(
                "integration/nats/test_publisher.py::"
                "test_a_message_over_the_limit_of_the_stream_fails_permanently_and_alone",
                "integration/nats/test_publisher.py::"
                "test_a_message_over_the_limit_of_the_server_is_not_sent_and_the_connection_stays",
            ),
            redis=shown(
                "integration/redis/test_transport_refused.py::"
                "test_a_message_over_a_limit_that_cannot_be_read_fails_alone"
            ),
            webhook=shown("integration/webhook/test_requests.py::test_an_event_that_is_too_large_fails_alone"),
            handlers=not_applicable("handlers have no limit of their own"),
        ),
    ),
)
