"""The address of a client: the peer of the connection or, behind trusted proxies, the address that they forward."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from starlette.requests import Request

from pillarbox.core.errors import ConfigurationError

Network = IPv4Network | IPv6Network
_LONGEST = 2000


def network(address: str) -> Network:
    """Parse the address or the network of a proxy. Raises ConfigurationError."""
    try:
        return ip_network(address)
    except ValueError:
        raise ConfigurationError(
            f"{address!r} is not the address of a proxy: write for example 10.0.0.7 or 10.0.0.0/24"
        ) from None


def peer_of(request: Request) -> str:
    """Return the address of the other end of the connection."""
    return request.client.host if request.client else ""


def is_within(networks: Sequence[Network], address: str) -> bool:
    try:
        peer = ip_address(address)
    except ValueError:
        return False
    return any(peer in one for one in networks)


def client_of(request: Request, proxies: Sequence[Network]) -> str:
    """Return the last address of `X-Forwarded-For` that is not a trusted proxy; otherwise the peer.

    Clients can forge the addresses before it. An IPv6 address becomes its /64 network, which belongs to one customer.
    """
    found = peer_of(request)
    hops = ",".join(request.headers.getlist("x-forwarded-for"))[-_LONGEST:].split(",")
    while is_within(proxies, found) and hops:
        hop = hops.pop().strip()
        try:
            found = str(ip_address(hop))
        except ValueError:
            break
    return _counted(found)


def _counted(address: str) -> str:
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    if not isinstance(parsed, IPv6Address):
        return address
    return str(parsed.ipv4_mapped or ip_network(f"{parsed}/64", strict=False))
