"""Three RabbitMQ nodes on one machine, which share a port mapper and a cookie; quorum queues have a member on each."""

from __future__ import annotations

import re

from tests.servers import processes
from tests.servers.rabbitmq import RabbitMQServer
from tests.servers.server import Server
from tests.servers.waiting import wait_until

_COOKIE = "PILLARBOXTESTCOOKIE"
_LEADERS = "[element(2, amqqueue:get_pid(Q)) || Q <- rabbit_amqqueue:list()]"
_RUNNING = "length(rabbit_mnesia:cluster_nodes(running))"


class RabbitMQCluster(Server):
    """Three brokers, each of which can be killed and started again."""

    def __init__(self) -> None:
        self.nodes = [RabbitMQServer() for _ in range(3)]
        first = self.nodes[0]
        for node in self.nodes[1:]:
            node._epmd_port = first._epmd_port

    def url(self) -> str:
        hosts = ",".join(f"127.0.0.1:{node.port}" for node in self.nodes)
        return f"amqp://guest:guest@{hosts}/%2F"

    def start(self) -> None:
        """Returns when all three are one cluster."""
        first = self.nodes[0]
        for node in self.nodes:
            cookie = node.folder / ".erlang.cookie"
            cookie.write_text(_COOKIE)
            cookie.chmod(0o400)
            processes.hand_over(cookie)
            node._epmd = first._epmd  # the first one starts it
            node.start()
            if node is not first:
                node.ctl("stop_app")
                node.ctl("join_cluster", first.node)
                node.ctl("start_app")
        self.wait_complete()

    def wait_complete(self) -> None:
        """Wait until every node runs and sees the others."""
        for node in self.nodes:
            wait_until(lambda: int(node.evaluate(_RUNNING)) == 3, bound=90, what=f"{node.node} sees the others")  # noqa: B023

    def leader(self) -> RabbitMQServer:
        """Return a node with the leader of a queue; the first node if there is no queue."""
        names = re.findall(r"pillarbox-\d+@localhost", self.nodes[0].evaluate(_LEADERS))
        return next((node for node in self.nodes if node.node in names[:1]), self.nodes[0])

    def close(self) -> None:
        """The first one last: it ends the port mapper."""
        for node in reversed(self.nodes):
            if node is not self.nodes[0]:
                node._epmd = None
            node.close()
