"""A namespace of the network with private addresses that nothing else has, made and removed by the test.

Only root can make one. Sockets belong to the namespace in which they were created, so that a thread that enters it
creates the socket of a receiver there; packets to it never leave this machine.
"""

from __future__ import annotations

import ctypes
import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from tests.servers import debian
from tests.servers.debian import MissingServer

_CLONE_NEWNET = 0x40000000


@dataclass(frozen=True, slots=True, kw_only=True)
class Namespace:
    """A namespace that is reached by these addresses."""

    name: str
    ipv4: str
    ipv6: str

    def listen(self, host: str) -> socket.socket:
        """A socket inside that listens on one of the addresses."""
        made: list[socket.socket] = []

        def enter() -> None:
            libc = ctypes.CDLL(None, use_errno=True)
            with open(f"/run/netns/{self.name}", "rb") as namespace:
                if libc.setns(namespace.fileno(), _CLONE_NEWNET) != 0:
                    raise OSError(ctypes.get_errno(), "setns")
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            made.append(socket.create_server((host, 0), family=family))

        thread = threading.Thread(target=enter)  # the namespace is that of the thread, which ends
        thread.start()
        thread.join()
        return made[0]


@contextmanager
def namespace() -> Iterator[Namespace]:
    """Raises MissingServer where none can be made."""
    tool, number = debian.IP.path(), os.getpid() % 16_000
    if os.geteuid() != 0:
        raise MissingServer("only root can make a namespace of the network")
    name, outside, inside = f"pillarbox-{number}", f"pbo{number}", f"pbi{number}"
    prefix = f"10.213.{number // 64}.{number % 64 * 4}"
    base = prefix.rpartition(".")[0] + "."
    last = int(prefix.rpartition(".")[2])
    here, there = f"{base}{last + 1}", f"{base}{last + 2}"
    here6, there6 = f"fd5b:{number:x}::1", f"fd5b:{number:x}::2"

    def ip(*arguments: str, within: bool = False) -> None:
        subprocess.run([tool, *(("-n", name) if within else ()), *arguments], check=True, capture_output=True)

    try:
        ip("netns", "add", name)
        ip("link", "add", outside, "type", "veth", "peer", "name", inside, "netns", name)
        for device, one, one6, within in ((outside, here, here6, False), (inside, there, there6, True)):
            ip("addr", "add", f"{one}/30", "dev", device, within=within)
            ip("addr", "add", f"{one6}/126", "dev", device, "nodad", within=within)
            ip("link", "set", device, "up", within=within)
        yield Namespace(name=name, ipv4=there, ipv6=there6)
    except subprocess.CalledProcessError as error:
        raise MissingServer(f"a namespace of the network cannot be made: {error.stderr.decode().strip()}") from None
    finally:
        for arguments in (("link", "delete", outside), ("netns", "delete", name)):
            with suppress(subprocess.CalledProcessError):
                ip(*arguments)
