"""The process of a mock Kafka cluster: librdkafka's, which speaks the protocol over TCP, with a port for commands.

Run as a script with the path of librdkafka, the control port and the number of brokers. Each connection to the control
port carries one command, a JSON array such as `["down", 1]`, and receives one JSON value. The
cluster lives in memory and ends with the process.
"""

import ctypes
import json
import socketserver
import sys
from typing import Any

_PRODUCER = 0
_ERROR_TEXT = 512


class MockCluster:
    def __init__(self, library: str, brokers: int) -> None:
        self._kafka = kafka = ctypes.CDLL(library)
        for name in ("conf_new", "new", "mock_cluster_new"):
            getattr(kafka, f"rd_kafka_{name}").restype = ctypes.c_void_p
        kafka.rd_kafka_mock_cluster_bootstraps.restype = ctypes.c_char_p
        text = ctypes.create_string_buffer(_ERROR_TEXT)
        configuration = ctypes.c_void_p(kafka.rd_kafka_conf_new())
        handle = kafka.rd_kafka_new(_PRODUCER, configuration, text, ctypes.c_size_t(_ERROR_TEXT))
        if not handle:
            raise RuntimeError(text.value.decode())
        self._brokers = range(1, brokers + 1)
        self._cluster = ctypes.c_void_p(kafka.rd_kafka_mock_cluster_new(ctypes.c_void_p(handle), brokers))
        kafka.rd_kafka_mock_group_initial_rebalance_delay_ms(self._cluster, 0)

    def bootstraps(self) -> str:
        """host:port of every broker, separated by commas."""
        found: bytes = self._kafka.rd_kafka_mock_cluster_bootstraps(self._cluster)
        return found.decode()

    def create(self, topic: str, partitions: int, replication: int) -> None:
        self._check(self._kafka.rd_kafka_mock_topic_create(self._cluster, topic.encode(), partitions, replication))

    def lead(self, topic: str, broker: int, partitions: int) -> None:
        """Make a broker the leader of the first partitions; their logs stay."""
        for partition in range(partitions):
            self._check(
                self._kafka.rd_kafka_mock_partition_set_leader(self._cluster, topic.encode(), partition, broker)
            )

    def down(self, *brokers: int) -> None:
        """Drop the connections of these brokers, or of all, and accept none; their logs stay."""
        for broker in brokers or self._brokers:
            self._check(self._kafka.rd_kafka_mock_broker_set_down(self._cluster, broker))

    def up(self, *brokers: int) -> None:
        for broker in brokers or self._brokers:
            self._check(self._kafka.rd_kafka_mock_broker_set_up(self._cluster, broker))

    def rtt(self, milliseconds: int) -> None:
        for broker in self._brokers:
            self._check(self._kafka.rd_kafka_mock_broker_set_rtt(self._cluster, broker, milliseconds))

    def errors(self, api: int, *codes: int) -> None:
        """Answer the next requests of this kind with these codes; 0 lets one pass. They queue up until `clear`."""
        array = (ctypes.c_int * len(codes))(*codes)
        self._kafka.rd_kafka_mock_push_request_errors_array(
            self._cluster, ctypes.c_int16(api), ctypes.c_size_t(len(codes)), array
        )

    def clear(self, api: int) -> None:
        self._kafka.rd_kafka_mock_clear_request_errors(self._cluster, ctypes.c_int16(api))

    def topic_error(self, topic: str, code: int) -> None:
        """What metadata says of a topic; 0: it exists."""
        self._kafka.rd_kafka_mock_topic_set_error(self._cluster, topic.encode(), code)

    def _check(self, code: int) -> None:
        if code:
            raise RuntimeError(f"librdkafka answered {code}")


def main(library: str, port: str, brokers: str) -> None:
    cluster = MockCluster(library, int(brokers))

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            name, *arguments = json.loads(self.rfile.readline())
            try:
                answer: Any = {"result": getattr(cluster, name)(*arguments)}
            except RuntimeError as error:
                answer = {"error": str(error)}
            self.wfile.write(json.dumps(answer).encode() + b"\n")

    socketserver.TCPServer.allow_reuse_address = True
    with socketserver.TCPServer(("127.0.0.1", int(port)), Handler) as server:
        server.serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
