"""Three NATS servers on a switch, each in a network namespace of its own, one of which can be cut off."""

from __future__ import annotations

import json
import urllib.request

from tests.servers.nats import NatsCluster, NatsServer
from tests.servers.switched_network import SwitchedNetwork

_CLUSTER_PORT = 6222
_MONITOR_PORT = 8222


class NatsPartition(NatsCluster):
    """A server that is cut off from the others stays connected to its clients."""

    def __init__(self) -> None:
        self._network = SwitchedNetwork(3)
        try:
            places = {f"n{host.number}": host for host in self._network.hosts}
            routes = {name: f"{host.peer_address}:{_CLUSTER_PORT}" for name, host in places.items()}
            self.servers = {name: NatsServer(name=name, routes=routes) for name in routes}
            for name, server in self.servers.items():
                server.host, server.namespace = places[name].address, places[name].namespace
                server.lines = [f'http: "{server.host}:{_MONITOR_PORT}"']
        except BaseException:
            self._network.close()
            raise
        self._places = places

    def clients(self, name: str) -> int:
        """How many clients are connected to a server."""
        address = f"http://{self.servers[name].host}:{_MONITOR_PORT}/connz"
        with urllib.request.urlopen(address, timeout=30) as answer:
            return int(json.load(answer)["num_connections"])

    def cut_off(self, name: str) -> None:
        self._network.pull(self._places[name])

    def reconnect(self) -> None:
        for place in self._places.values():
            self._network.plug(place)

    def close(self) -> None:
        super().close()
        self._network.close()
