"""Connecting: several addresses of a name, and answers of a name server that are kept."""

import asyncio
import socket
from typing import Any

import pytest

from pillarbox.transports.webhook import connection
from pillarbox.transports.webhook.connection import BaseConnection, ConnectFailedError, Dialer, KeptAddresses
from pillarbox.transports.webhook.guard import AddressGuard
from pillarbox.transports.webhook.plugin import HttpEndpoint, tls_context

ENDPOINT = HttpEndpoint.parse("http://receiver.example:1")
Attempt = tuple[Any, ...]


def info(address: str) -> Attempt:
    return (socket.AF_INET, socket.SOCK_STREAM, 0, "", (address, 1))


class Attempts(Dialer):
    """Attempts that end as a test says: with a connection, with an error, or never."""

    def __init__(self, outcomes: dict[str, object]) -> None:
        async def resolve(host: str, port: int) -> list[Attempt]:
            return [info(address) for address in outcomes]

        super().__init__(AddressGuard(), tls_context(""), resolve)
        self._outcomes = outcomes
        self.begun: list[str] = []
        self.cancelled: list[str] = []

    async def _dial(self, endpoint: HttpEndpoint, info: Attempt, protocol: Any) -> Any:
        address = info[4][0]
        self.begun.append(address)
        outcome = self._outcomes[address]
        if outcome == "never":
            try:
                await asyncio.Event().wait()
            finally:
                self.cancelled.append(address)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "STAGGER", 0.001)


async def test_an_address_that_never_answers_does_not_keep_from_the_next_one() -> None:
    opened = BaseConnection()
    attempts = Attempts({"1.1.1.1": "never", "2.2.2.2": OSError(111, "refused"), "3.3.3.3": opened})
    assert await attempts.dial(ENDPOINT, BaseConnection) is opened
    await asyncio.sleep(0)
    assert (attempts.begun, attempts.cancelled) == (["1.1.1.1", "2.2.2.2", "3.3.3.3"], ["1.1.1.1"])


async def test_the_first_address_is_used_if_it_answers() -> None:
    opened = BaseConnection()
    attempts = Attempts({"1.1.1.1": opened, "2.2.2.2": BaseConnection()})
    assert await attempts.dial(ENDPOINT, BaseConnection) is opened
    assert attempts.begun == ["1.1.1.1"]


async def test_the_error_names_every_reason_once() -> None:
    attempts = Attempts(
        {"1.1.1.1": OSError(111, "refused"), "2.2.2.2": OSError(111, "refused"), "3.3.3.3": OSError(113, "no route")}
    )
    with pytest.raises(ConnectFailedError, match=r"^refused; no route$"):
        await attempts.dial(ENDPOINT, BaseConnection)
    with pytest.raises(ConnectFailedError, match="it has no address"):
        await Attempts({}).dial(ENDPOINT, BaseConnection)


@pytest.mark.parametrize("name", ["a..b", "a" * 64])
async def test_a_name_that_cannot_be_looked_up_is_unreachable(name: str) -> None:
    endpoint = HttpEndpoint(scheme="http", host=name, port=1, base="")
    with pytest.raises(ConnectFailedError):
        await Dialer(AddressGuard(), tls_context("")).dial(endpoint, BaseConnection)


async def test_a_connection_that_is_made_too_late_is_closed() -> None:
    """An attempt that ends in the turn in which the connecting is cancelled."""
    begun, made = asyncio.Event(), asyncio.Event()
    aborted: list[str] = []

    class Late(BaseConnection):
        def abort(self) -> None:
            aborted.append("late")

    class OneAttempt(Attempts):
        async def _dial(self, endpoint: HttpEndpoint, info: Attempt, protocol: Any) -> Any:
            begun.set()
            await made.wait()
            connecting.cancel()
            return Late()

    connecting = asyncio.ensure_future(OneAttempt({"1.1.1.1": None}).dial(ENDPOINT, BaseConnection))
    await begun.wait()
    made.set()
    with pytest.raises(asyncio.CancelledError):
        await connecting
    await asyncio.sleep(0)
    assert aborted == ["late"]


async def test_a_name_is_resolved_once_for_several_connections_and_again_after_a_failure() -> None:
    asked: list[str] = []

    async def resolve(host: str, port: int) -> list[Attempt]:
        asked.append(host)
        await asyncio.sleep(0)
        if len(asked) == 1:
            raise OSError(None, "no such host")
        return [info("1.1.1.1")]

    kept = KeptAddresses(resolve)
    with pytest.raises(OSError, match="no such host"):
        await kept("a", 1)
    assert list(await asyncio.gather(*(kept("a", 1) for _ in range(3)))) == [[info("1.1.1.1")]] * 3
    assert asked == ["a", "a"]
    await kept("b", 1)
    kept.forget()
    await kept("a", 1)
    assert asked == ["a", "a", "b", "a"]


async def test_a_cancelled_connection_does_not_cancel_the_resolution_of_others() -> None:
    release = asyncio.Event()

    async def resolve(host: str, port: int) -> list[Attempt]:
        await release.wait()
        return [info("1.1.1.1")]

    kept = KeptAddresses(resolve)
    first, second = asyncio.ensure_future(kept("a", 1)), asyncio.ensure_future(kept("a", 1))
    await asyncio.sleep(0)
    first.cancel()
    release.set()
    assert await second == [info("1.1.1.1")]


async def test_the_addresses_of_a_name_are_asked_for_again_after_some_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    async def resolve(host: str, port: int) -> list[Attempt]:
        asked.append(host)
        return [info("1.1.1.1")]

    kept = KeptAddresses(resolve)
    await kept("a", 1)
    await kept("a", 1)
    assert asked == ["a"]
    monkeypatch.setattr(connection, "KEPT", -1.0)
    await kept("a", 1)
    assert asked == ["a", "a"]
