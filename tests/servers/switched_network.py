"""Hosts on a switch, each a network namespace: a cable can be pulled and plugged in again.

Each host has two cables, one to the other hosts and one to the tests. The switch is a namespace, too, so that this
machine sees only one end of one cable, and no address of the network between the hosts. Only root can make all this;
packets never leave this machine.
"""

from __future__ import annotations

import os
import subprocess
from contextlib import ExitStack, suppress
from dataclasses import dataclass

from tests.servers import debian
from tests.servers.debian import MissingServer

_CLIENTS, _PEERS = "clients", "peers"
"""The two bridges in the switch; a port has the name of its bridge and the number of its host."""
_OUTSIDE = 14


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """A namespace."""

    number: int
    namespace: str
    address: str
    """Where the tests reach it."""
    peer_address: str
    """Where the other hosts reach it; only they can."""


class SwitchedNetwork:
    """Hosts that reach each other and are reached by the tests. `close` removes everything.

    Raises MissingServer where namespaces cannot be made.
    """

    def __init__(self, count: int) -> None:
        self._tool = debian.IP.path()
        if os.geteuid() != 0:
            raise MissingServer("only root can make a namespace of the network")
        pid, block = os.getpid(), os.getpid() % 4096
        self._switch = f"pillarbox-{pid}-switch"
        self._outside = f"pbs{pid}"
        prefix = f"10.214.{block // 16}"
        self._addresses = [f"{prefix}.{block % 16 * 16 + last}" for last in (*range(1, count + 1), _OUTSIDE)]
        self.hosts = [
            Host(
                number=number, namespace=f"pillarbox-{pid}-{number}", address=address, peer_address=f"10.215.0.{number}"
            )
            for number, address in enumerate(self._addresses[:count], start=1)
        ]
        self._created = ExitStack()
        try:
            self._create()
        except subprocess.CalledProcessError as error:
            self.close()
            raise MissingServer(f"a network of namespaces cannot be made: {error.stderr.decode().strip()}") from None
        except BaseException:
            self.close()
            raise

    def pull(self, host: Host, *, from_clients: bool = False) -> None:
        """Pull the cable to the other hosts, and also the one to the tests. Both ends stay up, packets disappear."""
        for bridge in (_PEERS, _CLIENTS) if from_clients else (_PEERS,):
            self._ip("link", "set", f"{bridge}{host.number}", "nomaster", within=self._switch)

    def plug(self, host: Host) -> None:
        """Plug both cables in; succeeds also if they are."""
        for bridge in (_PEERS, _CLIENTS):
            self._ip("link", "set", f"{bridge}{host.number}", "master", bridge, within=self._switch)

    def close(self) -> None:
        """Remove everything that was created."""
        self._created.close()

    def _create(self) -> None:
        self._add_namespace(self._switch)
        for bridge in (_CLIENTS, _PEERS):
            self._ip("link", "add", bridge, "type", "bridge", within=self._switch)
            self._ip("link", "set", bridge, "up", within=self._switch)
        self._ip("link", "add", self._outside, "type", "veth", "peer", "name", _CLIENTS + "0", "netns", self._switch)
        self._created.callback(self._remove, "link", "delete", self._outside)
        self._connect(_CLIENTS + "0", _CLIENTS)
        self._ip("addr", "add", f"{self._addresses[-1]}/28", "dev", self._outside)
        self._ip("link", "set", self._outside, "up")
        for host in self.hosts:
            self._add_namespace(host.namespace)
            for bridge, address in ((_CLIENTS, f"{host.address}/28"), (_PEERS, f"{host.peer_address}/24")):
                port = f"{bridge}{host.number}"
                peer = ("type", "veth", "peer", "name", port, "netns", self._switch)
                self._ip("link", "add", bridge, *peer, within=host.namespace)
                self._connect(port, bridge)
                self._ip("addr", "add", address, "dev", bridge, within=host.namespace)
                self._ip("link", "set", bridge, "up", within=host.namespace)

    def _add_namespace(self, name: str) -> None:
        self._ip("netns", "add", name)
        self._created.callback(self._remove, "netns", "delete", name)
        self._ip("link", "set", "lo", "up", within=name)

    def _connect(self, port: str, bridge: str) -> None:
        self._ip("link", "set", port, "master", bridge, "up", within=self._switch)

    def _ip(self, *arguments: str, within: str = "") -> None:
        where = ("-n", within) if within else ()
        subprocess.run([self._tool, *where, *arguments], check=True, capture_output=True)

    def _remove(self, *arguments: str) -> None:
        with suppress(subprocess.CalledProcessError):
            self._ip(*arguments)
