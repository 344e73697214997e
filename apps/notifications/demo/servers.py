"""Servers on loopback: a mail server that can be stopped, and a gateway for push and SMS.

Both count the ids of accepted messages; the verification relies on these counts alone.
"""

from __future__ import annotations

import socket
from collections import Counter
from email import message_from_bytes
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session


class FakeMailServer:
    """Accepts every mail; `accepted` counts them by delivery."""

    def __init__(self) -> None:
        self.accepted: Counter[str] = Counter()
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port: int = free.getsockname()[1]
        self._controller: Controller | None = None

    @property
    def open(self) -> bool:
        return self._controller is not None

    def start(self) -> None:
        self._controller = Controller(self, hostname="127.0.0.1", port=self.port)
        self._controller.start()

    def stop(self) -> None:
        """Refuse connections from now on."""
        if self._controller is not None:
            self._controller.stop()
            self._controller = None

    async def handle_DATA(self, _server: SMTP, _session: Session, envelope: Envelope) -> str:
        message_id = str(message_from_bytes(envelope.original_content or b"")["Message-ID"])
        self.accepted[message_id.strip("<>").partition("@")[0]] += 1
        return "250 OK"


class Gateway:
    """Accepts every push and SMS; `accepted` counts requests by delivery."""

    def __init__(self) -> None:
        self.accepted: Counter[str] = Counter()
        accepted = self.accepted

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                accepted[self.headers["Idempotency-Key"]] += 1
                self.send_response(202)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Silence the access log."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
