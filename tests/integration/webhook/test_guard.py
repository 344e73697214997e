"""No request reaches an address that is not public, however the URL names it; nothing but loopback and a namespace of
the test's own is ever connected to."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from pillarbox.core.errors import UnavailableError
from pillarbox.testing.conformance.transports import outgoing
from pillarbox.transports.webhook import WebhookTransport
from pillarbox.transports.webhook.connection import KeptAddresses
from tests.integration.webhook.conftest import MakeTransport
from tests.integration.webhook.namespaces import Namespace, namespace
from tests.integration.webhook.receiver import Receiver
from tests.integration.webhook.resolver import Scripted
from tests.servers.availability import available

TO = WebhookTransport.to()
LOOPBACK = [
    "localhost",
    "127.0.0.1",
    "0x7f000001",
    "0x7f.0.0.1",
    "0.0.0.0",  # noqa: S104 - to be refused, not to be bound
    "[::1]",
    "[::]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
]


@pytest.fixture(scope="module")
def place() -> Iterator[Namespace]:
    with _available() as made:
        yield made


@contextmanager
def _available() -> Iterator[Namespace]:
    making = namespace()
    made = available(making.__enter__)
    try:
        yield made
    finally:
        making.__exit__(None, None, None)


def forget_addresses(transport: WebhookTransport) -> None:
    """As if the time to live of its resolved addresses were over."""
    resolver = transport._pool.dialer._resolver
    assert isinstance(resolver, KeptAddresses)
    resolver.forget()


@pytest.mark.parametrize("host", LOOPBACK)
async def test_loopback_is_refused_however_it_is_written(make: MakeTransport, receiver: Receiver, host: str) -> None:
    transport = make(f"http://{host}:{receiver.port}", allow_networks=[])
    [result] = await transport.send([outgoing("a", TO)])
    assert isinstance(result, UnavailableError)
    assert "not a public address" in str(result)
    with pytest.raises(UnavailableError, match="not a public address"):
        await transport.ping()
    assert receiver.requests == []
    assert receiver.peers() == set()


async def test_an_address_is_guarded_also_if_the_transport_has_another_url(
    make: MakeTransport, receiver: Receiver
) -> None:
    transport = make("https://receiver.example", allow_networks=["10.0.0.0/8"])
    [result] = await transport.send([outgoing("a", WebhookTransport.to(receiver.url("/inside")))])
    assert isinstance(result, UnavailableError)
    assert receiver.requests == []


async def test_a_name_that_resolves_to_loopback_is_refused(make: MakeTransport, receiver: Receiver) -> None:
    resolver = Scripted([["127.0.0.1", "::1", "::ffff:127.0.0.1"]])
    transport = make(f"http://receiver.example:{receiver.port}", allow_networks=[], resolver=resolver)
    [result] = await transport.send([outgoing("a", TO)])
    assert isinstance(result, UnavailableError)
    assert "not a public address" in str(result)
    assert resolver.asked == ["receiver.example"]
    assert receiver.requests == []


async def test_a_name_that_changes_its_address_is_checked_for_every_connection(
    make: MakeTransport, place: Namespace
) -> None:
    """DNS rebinding: the first answer is allowed, the second one is another internal address."""
    async with (
        Receiver(listening=place.listen(place.ipv4)) as allowed,
        Receiver(listening=place.listen(place.ipv6)) as internal,
    ):
        resolver = Scripted([[place.ipv4], [place.ipv6]])
        transport = make(
            f"http://receiver.example:{allowed.port}", allow_networks=[f"{place.ipv4}/32"], resolver=resolver
        )
        assert await transport.send([outgoing("a", TO)]) == [None]
        await allowed.aclose()  # the next request needs a new connection, and asks for the address again
        forget_addresses(transport)
        [result] = await transport.send([outgoing("b", TO)])
        assert isinstance(result, UnavailableError)
        assert "not a public address" in str(result)
        assert (allowed.ids(), internal.requests) == (["a"], [])


@pytest.mark.parametrize("family", ["ipv4", "ipv6"])
async def test_a_private_address_is_refused_unless_its_network_is_allowed(
    make: MakeTransport, place: Namespace, family: str
) -> None:
    address = str(getattr(place, family))
    async with Receiver(listening=place.listen(address)) as receiver:
        host = f"[{address}]" if ":" in address else address
        url = f"http://{host}:{receiver.port}"
        [result] = await make(url, allow_networks=[]).send([outgoing("a", TO)])
        assert isinstance(result, UnavailableError)
        assert address in str(result)
        assert (receiver.requests, receiver.peers()) == ([], set())
        assert await make(url, allow_networks=[f"{address}"]).send([outgoing("b", TO)]) == [None]
        assert receiver.ids() == ["b"]


async def test_of_several_addresses_the_allowed_one_is_used(make: MakeTransport, receiver: Receiver) -> None:
    resolver = Scripted([["127.0.0.2", "127.0.0.1", "::1"]])
    transport = make(f"http://receiver.example:{receiver.port}", allow_networks=["127.0.0.1/32"], resolver=resolver)
    assert await transport.send([outgoing("a", TO)]) == [None]
    assert receiver.ids() == ["a"]


async def test_a_guarded_connection_is_not_reused_for_another_host(make: MakeTransport, receiver: Receiver) -> None:
    resolver = Scripted([["127.0.0.1"], ["::1"]])
    transport = make(f"http://a.example:{receiver.port}", allow_networks=["127.0.0.0/8"], resolver=resolver)
    other = WebhookTransport.to(f"http://b.example:{receiver.port}")
    assert await transport.send([outgoing("a", TO)]) == [None]
    [result] = await transport.send([outgoing("b", other)])
    assert isinstance(result, UnavailableError)
    assert resolver.asked == ["a.example", "b.example"]
