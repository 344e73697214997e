"""The guard refuses every address that is not public, however it is written. Nothing is sent."""

import socket
from collections.abc import Callable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pillarbox.core.errors import ConfigurationError
from pillarbox.transports.webhook.guard import AddressGuard, AddressRefusedError

PRIVATE = [
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "168.63.129.16/32",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.88.99.0/24",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/4",
    "240.0.0.0/4",
]
PRIVATE6 = [
    "::/127",
    "::1/128",
    "2001:db8::/32",
    "fc00::/7",
    "fe80::/10",
    "fec0::/10",
    "ff00::/8",
    "2002::/16",
    "2001::/23",
    "3fff::/20",
    "5f00::/16",
    "64:ff9b:1::/48",
]
WRITTEN: list[Callable[[IPv4Address], str]] = [
    str,
    lambda one: f"::ffff:{one}",
    lambda one: str(IPv6Address(0xFFFF << 32 | int(one))),
    lambda one: f"64:ff9b::{one}",
    lambda one: f"::{one}",
    lambda one: str(IPv6Address(0x2002 << 112 | int(one) << 80)),
]


def refused(host: str, *allowed: str) -> bool:
    try:
        AddressGuard(allowed).check(host)
    except AddressRefusedError:
        return True
    return False


@given(st.sampled_from(PRIVATE).map(IPv4Network), st.integers(0), st.sampled_from(WRITTEN))
def test_an_address_that_is_not_public_is_refused_in_every_notation(
    network: IPv4Network, number: int, write: Callable[[IPv4Address], str]
) -> None:
    assert refused(write(network[number % network.num_addresses]))


@given(st.sampled_from(PRIVATE6).map(IPv6Network), st.integers(0))
def test_an_ipv6_address_that_is_not_public_is_refused(network: IPv6Network, number: int) -> None:
    assert refused(str(network[number % network.num_addresses]))


def test_the_scope_of_a_link_local_address_does_not_matter() -> None:
    assert refused("fe80::1%eth0")


@pytest.mark.parametrize("host", ["1.1.1.1", "8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8"])
def test_a_public_address_is_allowed(host: str) -> None:
    assert not refused(host)


def test_an_allowed_network_is_allowed_in_every_notation_and_no_other_is() -> None:
    for host in ("10.1.2.3", "::ffff:10.1.2.3", "64:ff9b::a01:203"):
        assert not refused(host, "10.0.0.0/8")
    assert refused("10.1.2.3", "10.0.0.0/16", "192.168.0.0/16")
    assert not refused("::1", "::1/128")
    assert refused("::1", "127.0.0.0/8")


def test_a_refusal_names_the_address_and_the_setting() -> None:
    with pytest.raises(AddressRefusedError, match=r"::ffff:(7f00:1|127\.0\.0\.1) \(127\.0\.0\.1\) .*allow_networks"):
        AddressGuard().check("::ffff:127.0.0.1")


def test_no_socket_is_made_for_a_refused_address() -> None:
    for info in socket.getaddrinfo("localhost", 80, type=socket.SOCK_STREAM):
        with pytest.raises(AddressRefusedError):
            AddressGuard().socket_for(info)


@pytest.mark.parametrize("network", ["10.0.0.1/8", "localhost", "", "10/8"])
def test_an_invalid_network_is_rejected(network: str) -> None:
    with pytest.raises(ConfigurationError, match="allow_networks"):
        AddressGuard([network])
