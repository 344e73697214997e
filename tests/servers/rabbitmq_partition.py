"""Three RabbitMQ nodes on a switch, each in a network namespace of its own, one of which can be cut off.

A node that is cut off from the majority pauses (`pause_minority`, which RabbitMQ recommends where the network may fail:
one side keeps running, and no queue, binding or permission can differ afterwards). It notices after the tick time.
"""

from __future__ import annotations

import re

from tests.servers import processes
from tests.servers.rabbitmq import RabbitMQServer
from tests.servers.server import Server
from tests.servers.switched_network import Host, SwitchedNetwork
from tests.servers.waiting import wait_until

_COOKIE = "PILLARBOXTESTCOOKIE"
_EPMD_PORT = 4369
"""The same on all nodes of a cluster. It is that of Erlang: in its own namespace it is free."""
_TICK_TIME = 12
"""Seconds; a node notices after 9 to 15 s that another one is silent. RabbitMQ's default is 60."""
_BOUND = 90
"""Seconds for the cluster to notice a partition, or to recover from it; generous, for a busy machine."""
_HANG = 20
"""Seconds after which a node that does not recover by itself is restarted."""
_RUNNING = "length(rabbit_mnesia:cluster_nodes(running))"
_LEADERS = "[element(2, amqqueue:get_pid(Q)) || Q <- rabbit_amqqueue:list(), amqqueue:is_quorum(Q)]"
_TRANSFER = (
    "[rabbit_quorum_queue:transfer_leadership(Q, '{node}') || Q <- rabbit_amqqueue:list(), amqqueue:is_quorum(Q)]"
)
_PUBLISHERS = """length([C || C <- rabbit_channel:list_local(),
    (catch rabbit_channel:info(C, [confirm])) == [{confirm, true}]])"""  # a channel may end meanwhile
_NODE = re.compile(r"pillarbox@[\d.]+")


class RabbitMQHostNode(RabbitMQServer):
    """A broker on a host of the network. Its port mapper has the same namespace."""

    def __init__(self, host: Host, first: Host) -> None:
        super().__init__(
            settings={
                "cluster_partition_handling": "pause_minority",
                "loopback_users": "none",  # else guest cannot log in over the network
                "cluster_formation.peer_discovery_backend": "classic_config",
                "cluster_formation.classic_config.nodes.1": f"pillarbox@{first.peer_address}",
            }
        )
        self.place = host
        self.host, self.peer_host, self.namespace = host.address, host.peer_address, host.namespace
        self.node = f"pillarbox@{host.peer_address}"
        self._epmd_port = _EPMD_PORT

    def environment(self) -> dict[str, str]:
        variables = super().environment()
        more = f"{variables['RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS']} -kernel net_ticktime {_TICK_TIME}"
        return variables | {"RABBITMQ_USE_LONGNAME": "true", "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": more}

    def evaluate(self, expressions: str) -> str:
        """The same, repeated while the node accepts no connection, as on a busy machine or just after a partition."""
        answers: list[str] = []

        def is_answered() -> bool:
            try:
                answers.append(super(RabbitMQHostNode, self).evaluate(expressions))
            except processes.ServerFailed as error:
                if "failed to connect" not in str(error):
                    raise
            return bool(answers)

        wait_until(is_answered, bound=_BOUND, what=f"{self.node} answers")
        return answers[0]

    @property
    def publishers(self) -> int:
        """Connections that publish with confirms, as relays do."""
        return int(self.evaluate(_PUBLISHERS))

    @property
    def is_paused(self) -> bool:
        """Whether it has stopped to serve clients, because it sees no majority."""
        return self.evaluate("rabbit:is_running()") == "false"

    @property
    def running_nodes(self) -> int:
        """How many nodes of the cluster run, as far as it knows."""
        return int(self.evaluate(_RUNNING))

    def leaders(self) -> list[str]:
        """The node of the leader of each quorum queue, as far as it knows."""
        return _NODE.findall(self.evaluate(_LEADERS))


class RabbitMQPartition(Server):
    """Three brokers, one of which at a time can be cut off from the two others."""

    def __init__(self) -> None:
        self._network = SwitchedNetwork(3)
        self._minority: RabbitMQHostNode | None = None
        self.restarts = 0
        """Nodes that were restarted because they hung after a partition."""
        first = self._network.hosts[0]
        try:
            self.nodes = [RabbitMQHostNode(host, first) for host in self._network.hosts]
        except BaseException:
            self._network.close()
            raise

    def url(self) -> str:
        """The URL with all nodes."""
        hosts = ",".join(f"{node.host}:{node.port}" for node in self.nodes)
        return f"amqp://guest:guest@{hosts}/%2F"

    def start(self) -> None:
        """Returns when all three are one cluster."""
        for node in self.nodes:
            cookie = node.folder / ".erlang.cookie"
            cookie.write_text(_COOKIE)
            cookie.chmod(0o400)
            processes.hand_over(cookie)
            node.start()
        self._wait_complete()

    def lead(self, leader: RabbitMQHostNode) -> None:
        """Make a node the leader of every quorum queue."""

        def leads() -> bool:
            leaders = leader.leaders()
            if set(leaders) <= {leader.node}:
                return True
            leader.evaluate(_TRANSFER.format(node=leader.node))
            return False

        wait_until(leads, bound=_BOUND, what=f"{leader.node} leads every queue")

    def cut_off(self, minority: RabbitMQHostNode, *, from_clients: bool) -> None:
        """Return when the minority has paused, and the majority leads every queue.

        Clients stay connected to the minority until then, unless it is cut off from them, too.
        """
        self._minority = minority
        self._network.pull(minority.place, from_clients=from_clients)
        wait_until(lambda: minority.is_paused, bound=_BOUND, what=f"{minority.node} has no quorum and pauses")
        for node in self.nodes:
            if node is not minority:
                wait_until(
                    lambda: node.running_nodes == 2 and minority.node not in node.leaders(),  # noqa: B023
                    bound=_BOUND,
                    what=f"{node.node} belongs to a majority that leads every queue",
                )

    def reconnect(self) -> None:
        """Return when every node runs and sees the others.

        A paused node starts again by itself. RabbitMQ 3.10 on Erlang 25 sometimes hangs while it does so ("Global hang
        workaround" in its log): then the node is killed and started, as an operator would.
        """
        for node in self.nodes:
            self._network.plug(node.place)
        try:
            self._wait_complete(bound=_HANG)
        except TimeoutError:
            if self._minority is None:
                raise
            self.restarts += 1
            self._minority.kill()
            self._minority.start()
            self._wait_complete()

    def close(self) -> None:
        for node in reversed(self.nodes):
            node.close()
        self._network.close()

    def _wait_complete(self, *, bound: float = _BOUND) -> None:
        for node in self.nodes:
            wait_until(
                lambda: not node.is_paused and node.running_nodes == 3,  # noqa: B023
                bound=bound,
                what=f"{node.node} runs and sees the others",
            )
