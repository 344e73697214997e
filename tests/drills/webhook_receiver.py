"""`python -m tests.drills.webhook_receiver PORT`: a receiver of webhooks, with the inbox on SQLite, for a drill.

It verifies the signature, appends the id to the ledger of arrivals, and applies the effect in the transaction of the
inbox before it responds.
"""

from __future__ import annotations

import os
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from pillarbox import Inbox, WebhookVerificationError
from pillarbox.ops.child_process import read_job
from pillarbox.ops.drill.database import DrillTables
from pillarbox.ops.drill.ledger import ArrivalLog
from pillarbox.ops.drill.target import CONSUMER, DrillJob
from pillarbox.transports.webhook import WebhookVerifier
from tests.servers import processes
from tests.servers.ports import free_port, is_open
from tests.servers.waiting import wait_until

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


class Receiver:
    """The process of a receiver; the drill may kill and freeze it."""

    def __init__(self, job: DrillJob) -> None:
        self._job = job
        self._port = free_port()
        self._started: processes.Started | None = None
        self.url = f"http://127.0.0.1:{self._port}/"
        self.start()

    @property
    def pid(self) -> int:
        assert self._started is not None
        return self._started.pid

    def start(self) -> None:
        log = self._job.folder / f"receiver-{self._port}.log"
        with log.open("ab") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.drills.webhook_receiver", str(self._port)],
                env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        started = self._started = processes.Started(name="receiver", process=process, log=log, ports=(self._port,))
        processes.registry.processes.append(started)
        assert process.stdin is not None
        with process.stdin:
            process.stdin.write(self._job.dump().encode() + b"\n")
        wait_until(lambda: started.must_run() and is_open(self._port), bound=60, what="the receiver accepts requests")

    def kill(self) -> None:
        assert self._started is not None
        self._started.kill()
        self._started.wait_gone(60)
        processes.forget(self._started)

    stop = close = kill


def serve(port: int, job: DrillJob) -> None:
    target = job.target()
    tables, arrivals = DrillTables(target), ArrivalLog(Path(job.folder))
    inbox = Inbox(tables=target.settings.store.tables)
    verifier = WebhookVerifier(SECRET)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            try:
                event_id = verifier.verify(dict(self.headers.items()), body).event_id
            except WebhookVerificationError:
                self._respond(400)
                return
            arrivals.add(event_id)
            with tables._blocking_transaction() as connection:
                if inbox.admit(connection, CONSUMER, event_id):
                    tables.run(connection, "write_effect", event_id)
            self._respond(204)

        def _respond(self, status: int) -> None:
            self.send_response(status)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()


if __name__ == "__main__":
    serve(int(sys.argv[1]), DrillJob.load(read_job()))
