"""Which addresses a webhook may connect to: the guard against requests to internal services (SSRF).

The guard sees the address that a socket is about to connect to, after the name was resolved: it does not matter how the
address was written, and a name that resolves to another address the second time is checked the second time. Whatever is
not a public unicast address is refused unless `allow_networks` has it. An IPv4 address that is written as an IPv6
address (mapped, NAT64) counts as that IPv4 address; tunnels (6to4, Teredo) are refused.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any

from pillarbox.core.errors import ConfigurationError

IPAddress = IPv4Address | IPv6Address
_NAT64 = IPv6Network("64:ff9b::/96")
_IPV4_BITS = 0xFFFFFFFF
_NEVER_PUBLIC = (
    IPv4Network("192.0.0.0/24"),  # protocol assignments; a cloud has its metadata at 192.0.0.192
    IPv4Network("192.88.99.0/24"),  # relays of 6to4
    IPv4Network("168.63.129.16/32"),  # the agent of the host in Azure: a public address that only its guests reach
    IPv6Network("2001::/23"),
    IPv6Network("3fff::/20"),  # documentation
    IPv6Network("5f00::/16"),  # segment routing
    IPv6Network("64:ff9b:1::/48"),  # NAT64 of a private network
)
"""Networks that some releases of Python call global."""


class AddressRefusedError(OSError):
    """The guard refuses to connect to an address. An OSError: a client treats it as a failed connection, and continues
    with the other addresses of the name."""


class AddressGuard:
    """Checks addresses. Raises ConfigurationError for a network that cannot be read."""

    def __init__(self, allow_networks: Iterable[str] = ()) -> None:
        """allow_networks: networks that are not public and allowed all the same, as in `10.0.0.0/8`."""
        self._allowed = [_network(text) for text in allow_networks]

    def check(self, host: str) -> None:
        """Raise AddressRefusedError unless `host`, an IP address, may be connected to."""
        address = ip_address(host.partition("%")[0])  # what follows % is the scope of a link-local address
        inner = embedded(address)
        if any(one in network for one in (address, inner) for network in self._allowed):
            return
        if not is_public(inner):
            shown = f"{address}" if inner == address else f"{address} ({inner})"
            raise AddressRefusedError(
                f"{shown} is not a public address; add it to allow_networks if events may be sent there"
            )

    def socket_for(self, info: tuple[Any, ...]) -> socket.socket:
        """A socket for one result of `getaddrinfo`. Raises AddressRefusedError."""
        family, kind, protocol, _, address = info
        self.check(str(address[0]))
        return socket.socket(family=family, type=kind, proto=protocol)


def is_public(address: IPAddress) -> bool:
    """Whether it is a unicast address of the public internet."""
    if not address.is_global or address.is_multicast or address.is_reserved:
        return False
    if any(address in network for network in _NEVER_PUBLIC):
        return False
    if isinstance(address, IPv4Address):
        return True
    return not address.is_site_local and address.sixtofour is None and address.teredo is None


def embedded(address: IPAddress) -> IPAddress:
    """The IPv4 address that an IPv6 address stands for; the address itself if it stands for none."""
    if isinstance(address, IPv4Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return IPv4Address(int(address) & _IPV4_BITS) if address in _NAT64 else address


def _network(text: object) -> IPv4Network | IPv6Network:
    try:
        return ip_network(str(text))
    except ValueError as error:
        raise ConfigurationError(
            f"allow_networks has {text!r}, which is not a network: {error}; write for example 10.0.0.0/8 or ::1/128"
        ) from None
