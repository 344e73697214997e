"""A private Kafka: librdkafka's mock cluster in a process of its own, reached over TCP; or the broker at KAFKA_URL.

The mock has no disk: `kill` loses its messages. It cannot create topics on request, knows no users and no TLS, and does
not check sequence numbers. `make test-kafka` runs the same suites against a real broker.
"""

import json
import os
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import confluent_kafka
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.servers import processes
from tests.servers.ports import free_port, is_open
from tests.servers.server import Server
from tests.servers.waiting import wait_until

PRODUCE, METADATA, OFFSET_COMMIT, INIT_PRODUCER = 0, 3, 8, 22
"""Numbers of requests in the protocol."""
_SCRIPT = Path(__file__).with_name("kafka_mock.py")


KAFKA_URL = os.environ.get("KAFKA_URL", "")
"""The URL of a real broker to test instead of the mock."""
GROUP_SETTINGS = {} if KAFKA_URL else {"session.timeout.ms": 1500, "heartbeat.interval.ms": 200}
"""Settings of a consumer under test: the mock delays each rebalance by the session timeout less one second."""
PATIENT_GROUP_SETTINGS = {} if KAFKA_URL else {**GROUP_SETTINGS, "session.timeout.ms": 6_000}
"""The same for tests that no member may leave, however busy the machine is."""


class KafkaServer(Server):
    """A cluster that can be taken down and made to refuse requests; a real broker can only be used."""

    is_mock = not KAFKA_URL

    def __init__(self, *, brokers: int = 1) -> None:
        self._brokers = brokers
        self._control = free_port()
        self._started: processes.Started | None = None
        self.folder = processes.make_folder("kafka")
        self.bootstrap = ""

    def url(self) -> str:
        return f"kafka://{self.bootstrap}"

    def start(self) -> None:
        if not self.is_mock:
            self.bootstrap = KAFKA_URL.partition("://")[2]
            return
        self._started = processes.spawn(
            [sys.executable, str(_SCRIPT), str(_library()), str(self._control), str(self._brokers)],
            name="Kafka",
            folder=self.folder,
            log=self.folder / "kafka.log",
            ports=(self._control,),
            privileged=True,
        )
        started = self._started
        wait_until(
            lambda: started.must_run() and is_open(self._control), bound=60, what="the mock cluster takes commands"
        )
        self.bootstrap = self.tell("bootstraps")

    def close(self) -> None:
        if self._started is not None:
            self._started.kill()
            self._started.wait_gone(bound=60)
            processes.forget(self._started)
            self._started = None
        processes.remove_folder(self.folder)

    def create_topic(self, name: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> None:
        """`config` is the configuration of the topic on a real broker, such as `max.message.bytes`."""
        if self.is_mock:
            if config:
                raise processes.ServerFailed(f"the mock cluster has no configuration of topics: {config}")
            self.tell("create", name, partitions, 1)
            return
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        for created in admin.create_topics([NewTopic(name, partitions, 1, config=dict(config or {}))]).values():
            created.result(60)

    def down(self, *brokers: int) -> None:
        """Drop every connection and accept none until `up`."""
        self.tell("down", *brokers)

    def up(self, *brokers: int) -> None:
        self.tell("up", *brokers)

    def fail_requests(self, api: int, *codes: int) -> None:
        """Answer the next requests of this kind with these codes; 0 lets one pass."""
        self.tell("errors", api, *codes)

    def heal(self) -> None:
        """Undo everything that a test has done."""
        if not self.is_mock:
            return
        for api in (PRODUCE, METADATA, OFFSET_COMMIT, INIT_PRODUCER):
            self.tell("clear", api)
        self.tell("rtt", 0)
        self.up()

    def tell(self, *command: Any) -> Any:
        with socket.create_connection(("127.0.0.1", self._control), timeout=30) as connection:
            connection.sendall(json.dumps(command).encode() + b"\n")
            with connection.makefile() as answer:
                told = json.loads(answer.readline())
        if "error" in told:
            raise processes.ServerFailed(f"the mock cluster did not do {command}: {told['error']}")
        return told["result"]


def _library() -> Path:
    package = Path(confluent_kafka.__file__).parent
    [library] = package.with_name("confluent_kafka.libs").glob("librdkafka*.so*")
    return library
