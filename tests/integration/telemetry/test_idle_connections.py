"""Idle connections block no other client and exhaust no file descriptors."""

import asyncio
import logging
import socket
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from pillarbox.core.event import Event
from pillarbox.ops.monitor.http_server import served
from pillarbox.telemetry import connections
from tests.integration.cli.conftest import Stock, sqlite_url
from tests.integration.telemetry.processes import Pages, running
from tests.servers.ports import free_port
from tests.servers.waiting import wait_until

__all__ = ["sqlite_url"]

DESCRIPTORS, IDLE = 256, 600
BOUNDED = """
import resource, runpy, sys
resource.setrlimit(resource.RLIMIT_NOFILE, ({descriptors}, {descriptors}))
sys.argv = ["pillarbox", *{arguments}]
runpy.run_module("pillarbox", run_name="__main__", alter_sys=True)
"""


FORM = "application/x-www-form-urlencoded"


def half_a_body(path: str, kind: str) -> bytes:
    """An incomplete POST."""
    return f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\nContent-Length: 100\r\n\r\n{{".encode()


@contextmanager
def idle_connections(address: str, begin: bytes) -> Iterator[list[socket.socket]]:
    """Open many connections and send the start of a request on each."""
    host, port = address.split("/")[0].split(":")
    with ExitStack() as opened:
        connections = []
        for _ in range(IDLE):
            connections.append(opened.enter_context(socket.create_connection((host, int(port)), timeout=60)))
            with suppress(ConnectionError):  # beyond the limit
                connections[-1].sendall(begin)
        yield connections


def bounded(folder: Path, *arguments: str, **variables: str) -> AbstractContextManager[Pages]:
    script = BOUNDED.format(descriptors=DESCRIPTORS, arguments=list(arguments))
    return running(["-c", script], cwd=folder, variables=variables)


@pytest.mark.parametrize("begin", [b"", b"GET /livez HTTP/1.1\r\nX-Slow: "], ids=["silent", "half a request"])
def test_idle_connections_do_not_block_a_relay(sqlite_url: str, tmp_path: Path, begin: bytes) -> None:
    stock = Stock(sqlite_url)
    given = {
        "PILLARBOX_STORE": sqlite_url,
        "PILLARBOX_TRANSPORT": "stdout://",
        "PILLARBOX_RELAY__LISTEN": "127.0.0.1:0",
    }
    with bounded(tmp_path, "relay", "--json", **given) as pages:
        with idle_connections(pages.address, begin):
            assert pages.get("/livez").status_code == 200
            assert pages.get("/metrics").status_code == 200
            assert pages.descriptors() < DESCRIPTORS / 2
            stock.record(Event("order.placed", {}, event_id="beside"))
            wait_until(lambda: stock.states("beside") == ["PUBLISHED"], bound=60, what="the relay works")
        assert "out of system resource" not in pages.log_text()
        assert len(pages.log_text()) < 100_000


@pytest.mark.parametrize(
    "begin", [b"POST /everything HTTP/1.1\r\n", half_a_body("/everything", FORM)], ids=["half a request", "half a body"]
)
def test_idle_connections_do_not_block_a_console(sqlite_url: str, tmp_path: Path, begin: bytes) -> None:
    given = {"PILLARBOX_STORE": sqlite_url, "PILLARBOX_CONSOLE__LOGIN": "none"}
    listen = f"127.0.0.1:{free_port()}"
    with (
        bounded(tmp_path, "console", "--listen", listen, **given) as pages,
        idle_connections(listen, begin),
    ):
        assert pages.get("api/v1/status").status_code == 200
        assert pages.descriptors() < DESCRIPTORS / 2
        assert len(pages.log_text()) < 100_000


@pytest.mark.parametrize(
    "begin",
    [
        b"",
        b"GET /livez HTTP/1.1\r\nX-Slow: ",
        b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n",
        half_a_body("/read", FORM),
    ],
    ids=["silent", "half a request", "answered", "half a body"],
)
async def test_idle_keep_alive_connections_are_closed(begin: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    async def alive(_: Request) -> Response:
        return Response("alive")

    async def read(request: Request) -> Response:
        return Response(await request.body())

    monkeypatch.setattr(connections, "HEAD_TIMEOUT", 0.05)
    monkeypatch.setattr(connections, "BODY_TIMEOUT", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as port:
        async with served(Starlette(routes=[Route("/livez", alive), Route("/read", read, methods=["POST"])]), port):
            reader, writer = await asyncio.open_connection(*port.getsockname())
            writer.write(begin)
            said = await asyncio.wait_for(reader.read(), 60)
            writer.close()
    assert said.endswith(b"alive" if begin.endswith(b"\r\n\r\n") else b"")


def test_accept_failures_are_logged_once_a_minute() -> None:
    seldom = connections.DescriptorLogLimit()

    def passes(text: str) -> bool:
        return seldom.filter(logging.LogRecord("asyncio", logging.ERROR, __file__, 1, text, None, None))

    said = "socket.accept() out of system resource\nsocket: <…>"
    assert [passes(text) for text in (said, said, "another error", said)] == [True, False, True, False]
