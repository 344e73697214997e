"""Connections: credentials, TLS, several servers, permissions, and a server without JetStream."""

import ssl
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, aclosing
from pathlib import Path

import pytest

from pillarbox.core.errors import ConfigurationError, UnavailableError
from pillarbox.core.transport import Outgoing, SendResult
from pillarbox.testing.conformance.transports import outgoing
from pillarbox.testing.waiting import eventually
from pillarbox.transports.nats import NatsSource, NatsTransport
from tests.integration.nats.conftest import MakeTransport
from tests.servers import debian, processes
from tests.servers.availability import available
from tests.servers.nats import NatsServer
from tests.servers.ports import free_port

Batch = Callable[..., list[Outgoing]]
USERS = """
authorization { users: [
  { user: app, password: "p@ss,w/rd" }
  { user: reader, password: reader, permissions: { publish: { deny: "forbidden" } } }
  { user: deaf, password: deaf, permissions: { subscribe: "things" } }
] }
"""


def thing(event_id: str = "a", subject: str = "things") -> Outgoing:
    return outgoing(event_id, NatsTransport.to(subject=subject))


async def test_a_user_with_special_characters_in_the_password_is_let_in_and_a_wrong_one_is_not(
    make: MakeTransport,
) -> None:
    with available(lambda: NatsServer(lines=[USERS])) as server:
        assert await make(server.url("app:p%40ss%2Cw%2Frd@")).send([thing()]) == [None]
        refused = make(server.url("app:wrong-secret@"))
        [result] = await refused.send([thing()])
        assert isinstance(result, UnavailableError)
        assert "authorization violation" in str(result).lower()
        assert "wrong-secret" not in f"{result!r} {refused!r} {result.__cause__!r}"


async def test_a_subject_that_a_user_may_not_publish_to_is_unavailable_at_once_and_alone(make: MakeTransport) -> None:
    with available(lambda: NatsServer(lines=[USERS])) as server:
        assert await make(server.url("app:p%40ss%2Cw%2Frd@")).send([thing(), thing(subject="forbidden")]) == [
            None,
            None,
        ]
        results = await make(server.url("reader:reader@"), send_timeout="60s").send(
            [thing("b"), thing("c", "forbidden"), thing("d")]
        )
    assert [type(result) for result in results] == [type(None), UnavailableError, type(None)]
    assert "permissions violation" in str(results[1])


async def test_a_user_who_may_not_subscribe_to_replies_is_told_so_at_once(make: MakeTransport) -> None:
    with available(lambda: NatsServer(lines=[USERS])) as server:
        transport = make(server.url("deaf:deaf@"), send_timeout="60s")
        [result] = await transport.send([thing()])
        source = NatsSource(server.url("deaf:deaf@"), subject="things", reply_timeout="60s")
        with pytest.raises(UnavailableError, match="_INBOX"):
            await source.receive()
        await source.aclose()
    assert isinstance(result, UnavailableError)
    assert "grant the permission to subscribe to _INBOX.>" in str(result)


async def test_a_token_in_the_url_is_used_and_never_shown(make: MakeTransport) -> None:
    with available(lambda: NatsServer(lines=["authorization { token: s3cret-token }"])) as server:
        transport = make(server.url("s3cret-token@"))
        assert await transport.send([thing()]) == [None]
        [result] = await make(server.url("wrong-token@")).send([thing()])
    assert isinstance(result, UnavailableError)
    assert "token" not in f"{transport!r} {result}".replace("authorization violation", "")


async def test_the_next_server_of_the_url_is_used_where_one_does_not_answer(
    make: MakeTransport, nats_server: NatsServer, batch: Batch
) -> None:
    for _ in range(4):  # the order is random
        transport = make(f"nats://127.0.0.1:{free_port()},127.0.0.1:{nats_server.port}")
        assert await transport.send(batch(1)) == [None]


async def test_a_server_without_jetstream_is_unavailable(make: MakeTransport) -> None:
    with available(lambda: NatsServer(jetstream=False)) as server:
        [result] = await make(server.url()).send([thing()])
    assert isinstance(result, UnavailableError)
    assert "JetStream" in str(result)


async def test_a_source_without_its_server_is_unavailable() -> None:
    source = NatsSource(f"nats://app:hidden@127.0.0.1:{free_port()}", subject="things")
    with pytest.raises(UnavailableError) as caught:
        await source.connect()
    assert "hidden" not in f"{caught.value} {source!r}"
    await source.aclose()


@pytest.fixture(scope="module")
def certificates() -> Iterator[Path]:
    """An authority of our own and, signed by it, a certificate for `localhost`."""
    folder = processes.make_folder("certificates")
    openssl = available(debian.OPENSSL.path)
    new_key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1")

    def request(*arguments: str) -> None:
        processes.run([openssl, "req", "-x509", *new_key, *arguments], folder=folder)

    request(
        "-subj",
        "/CN=authority",
        "-addext",
        "keyUsage=critical,keyCertSign",
        "-keyout",
        "authority.key",
        "-out",
        "authority.pem",
    )
    request(
        *("-subj", "/CN=nats", "-addext", "subjectAltName=DNS:localhost", "-addext", "basicConstraints=CA:FALSE"),
        *("-CA", "authority.pem", "-CAkey", "authority.key", "-keyout", "nats.key", "-out", "nats.pem"),
    )
    yield folder
    processes.remove_folder(folder)


@pytest.fixture(scope="module")
def secure(certificates: Path) -> Iterator[NatsServer]:
    files = f'tls {{ cert_file: "{certificates}/nats.pem", key_file: "{certificates}/nats.key" }}'
    with available(lambda: NatsServer(lines=[files])) as server:
        yield server


async def test_a_server_with_a_trusted_certificate_is_used(
    make: MakeTransport, secure: NatsServer, certificates: Path
) -> None:
    trusted = ssl.create_default_context(cafile=str(certificates / "authority.pem"))
    assert await make(f"tls://localhost:{secure.port}", tls=trusted).send([thing()]) == [None]


async def test_an_untrusted_certificate_or_another_host_name_is_unavailable(
    make: MakeTransport, secure: NatsServer, certificates: Path
) -> None:
    trusted = ssl.create_default_context(cafile=str(certificates / "authority.pem"))
    for transport in (make(f"tls://localhost:{secure.port}"), make(f"tls://127.0.0.1:{secure.port}", tls=trusted)):
        [result] = await transport.send([thing()])
        assert isinstance(result, UnavailableError)
        assert "certificate" in str(result).lower()


async def test_a_server_that_offers_no_tls_receives_no_password(make: MakeTransport, nats_server: NatsServer) -> None:
    [result] = await make(f"tls://app:secret@127.0.0.1:{nats_server.port}").send([thing()])
    assert isinstance(result, UnavailableError)
    assert "no TLS" in str(result)


def test_a_tls_context_needs_a_tls_url() -> None:
    with pytest.raises(ConfigurationError, match="tls://"):
        NatsTransport("nats://localhost", tls=ssl.create_default_context())


async def test_a_user_that_may_not_ask_for_streams_is_told_so_at_once_and_sends_without_declare(
    make: MakeTransport,
) -> None:
    users = USERS.replace('deny: "forbidden"', 'deny: "$JS.API.>"')
    with available(lambda: NatsServer(lines=[users])) as server:
        assert await make(server.url("app:p%40ss%2Cw%2Frd@")).send([thing()]) == [None]
        [result] = await make(server.url("reader:reader@"), send_timeout="60s").send([thing("b")])
        assert isinstance(result, UnavailableError)
        assert "declare = false" in str(result)
        assert await make(server.url("reader:reader@"), declare=False).send([thing("c")]) == [None]


@pytest.fixture
def useless() -> Iterator[NatsServer]:
    """A server as it is in the minority of a cluster: it accepts connections, and has no JetStream now."""
    with available(lambda: NatsServer(jetstream=False)) as server:
        yield server


@pytest.mark.parametrize("declare", [True, False])
async def test_a_server_without_jetstream_is_left_for_the_next_one(
    make: MakeTransport, useless: NatsServer, url: str, name: str, declare: bool
) -> None:
    assert await make().send([thing(subject=name)]) == [None]
    results: list[SendResult] = [None]
    while results == [None]:  # the order of the servers is random
        transport = make(f"{useless.url()},{url.removeprefix('nats://')}", send_timeout="200ms", declare=declare)
        results = await transport.send([thing("b", name)])
    assert isinstance(results[0], UnavailableError)

    async def accepted() -> bool:
        return await transport.send([thing("b", name)]) == [None]

    await eventually(accepted)


async def test_a_source_leaves_a_server_without_jetstream_for_the_next_one(
    make: MakeTransport, useless: NatsServer, url: str, name: str
) -> None:
    assert await make().send([thing(subject=name)]) == [None]
    servers = f"{useless.url()},{url.removeprefix('nats://')}"

    async def connected(source: NatsSource) -> bool:
        try:
            await source.connect()
        except UnavailableError:
            return False
        return True

    async with AsyncExitStack() as opened:

        async def opened_source() -> NatsSource:
            source = NatsSource(servers, subject=name, stream=name, reply_timeout="200ms")
            return await opened.enter_async_context(aclosing(source))

        while await connected(source := await opened_source()):  # the order of the servers is random
            pass
        await eventually(lambda: connected(source))
