"""`make servers`: a private PostgreSQL and RabbitMQ to try things against, until Ctrl-C."""

import contextlib
import signal

from tests.servers.debian import MissingServer
from tests.servers.postgres import PostgresServer
from tests.servers.rabbitmq import RabbitMQServer


def main() -> int:
    # SIGTERM ends it the way Ctrl-C does, servers included.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with contextlib.suppress(KeyboardInterrupt), contextlib.ExitStack() as running:
        for start in (_start_postgres, _start_rabbitmq):
            try:
                print(start(running), flush=True)
            except MissingServer as missing:
                print(missing, flush=True)
        print("Ctrl-C stops them and removes their data.", flush=True)
        signal.pause()
    return 0


def _start_postgres(running: contextlib.ExitStack) -> str:
    return running.enter_context(PostgresServer()).url()


def _start_rabbitmq(running: contextlib.ExitStack) -> str:
    return running.enter_context(RabbitMQServer()).url()


if __name__ == "__main__":
    raise SystemExit(main())
