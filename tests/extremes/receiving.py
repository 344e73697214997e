"""The consumer's side of each transport, with a client of the tests' own: event ids in the order of arrival."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ssl import SSLContext
from threading import Thread
from typing import Any

import pika
from pika.exceptions import UnroutableError

from tests.integration.rabbitmq.consumer import channel, publish_confirmed

_LAST = "the-end"
_TIMEOUT = 60.0


def from_queue(url: str, queue: str) -> list[str]:
    """The ids of everything in a queue to which no relay sends at the moment; the queue is empty afterwards.

    A last message marks the end: a queue is first in, first out, and its count is only an estimate.
    """
    ids: list[str] = []
    with channel(url) as source:
        source.confirm_delivery()
        try:
            publish_confirmed(source, "", queue, b"", pika.BasicProperties(message_id=_LAST, delivery_mode=2))
        except UnroutableError:
            return []
        source.basic_qos(prefetch_count=100)
        for method, properties, _ in source.consume(queue, auto_ack=True, inactivity_timeout=_TIMEOUT):
            if method is None or properties is None:
                raise AssertionError(f"{queue}: the last message did not arrive within {_TIMEOUT:g} s")
            if properties.message_id == _LAST:
                break
            ids.append(str(properties.message_id))
        source.cancel()
    return ids


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    tls: SSLContext | None = None

    def finish_request(self, request: Any, client_address: Any) -> None:
        """The handshake of TLS is in the thread of its connection."""
        if self.tls is not None:
            with suppress(OSError), self.tls.wrap_socket(request, server_side=True) as secure:
                super().finish_request(secure, client_address)
        else:
            super().finish_request(request, client_address)

    def handle_error(self, request: object, client_address: object) -> None:
        """A connection was reset, as tests of links do."""


class WebhookReceiver:
    """Accepts requests on a thread of its own, all unless `accepts` says otherwise; the receiver of
    tests/integration/webhook limits the body."""

    def __init__(
        self,
        accepts: Callable[[Mapping[str, str], bytes], bool] = lambda headers, body: True,
        *,
        tls: SSLContext | None = None,
    ) -> None:
        self.received: list[tuple[str, bytes]] = []
        received = self.received

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                size = int(self.headers["content-length"])
                body = self.rfile.read(size)
                if len(body) < size:
                    return  # the connection ended
                is_accepted = accepts(dict(self.headers), body)
                if is_accepted:
                    received.append((self.headers["webhook-id"], body))
                self.send_response(204 if is_accepted else 401)
                if not is_accepted:
                    self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = _Server(("127.0.0.1", 0), Handler)
        self._server.tls = tls
        self.port = self._server.server_port
        self._thread = Thread(target=self._server.serve_forever)
        self._thread.start()

    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
