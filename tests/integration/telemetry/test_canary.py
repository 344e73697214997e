"""Passwords in URLs appear in no page, metric, log or process list."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psycopg

from pillarbox import Event, Outbox
from tests.integration.cli.running import environment, fresh_pillarbox
from tests.servers.waiting import wait_until

CANARY = "canary-password"
UNREACHABLE = f"amqp://guest:{CANARY}@127.0.0.1:1/%2F"
"""An unavailable broker: the error is logged without the password."""
CONSOLE = ("/", "/events", "/event?id=e1", "/dead", "/destinations", "/keys", "/relays", "/store?doctor=1", "/audit")
ALSO = ("/metrics", "/api/v1/status", "/api/v1/destinations", "/api/v1/openapi.json")


@contextmanager
def running(folder: Path, *arguments: str, **variables: str) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    log = folder / f"{arguments[-1].strip('-')}.log"
    with log.open("w") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-m", "pillarbox", "--verbose", *arguments],
            env=environment(variables),
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        )
        try:
            yield process, log
        finally:
            process.terminate()
            process.communicate(timeout=120)


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def test_no_output_shows_a_password(postgres_url: str, tmp_path: Path) -> None:
    addresses = {
        "PILLARBOX_STORE": postgres_url.replace("postgres@", f"postgres:{CANARY}@"),
        "PILLARBOX_TRANSPORT": UNREACHABLE,
    }
    assert CANARY in addresses["PILLARBOX_STORE"]
    with psycopg.connect(postgres_url) as connection:
        Outbox().record(connection, Event("order.placed", {}, event_id="e1"))
    reported = [
        fresh_pillarbox(*arguments, cwd=tmp_path, **addresses)
        for arguments in (("config", "show"), ("config", "show", "--json"), ("doctor", "--json"), ("status", "--json"))
    ]
    texts = [done.stdout + done.stderr for done in reported]
    with running(tmp_path, "--set", "relay.listen=127.0.0.1:0", "relay", "--json", **addresses) as (relay, log):
        first = said(relay)
        address = f"http://{json.loads(first)['listen']}"
        wait_until(lambda: "order.placed" in httpx.get(f"{address}/health").text, bound=90, what="the broker is missed")
        texts += [first, *(httpx.get(f"{address}/{page}").text for page in ("metrics", "health", "livez", "readyz"))]
        texts.append(Path(f"/proc/{relay.pid}/cmdline").read_text())
    texts.append(log.read_text())
    no_login = ("--set", "console.login=none", "--set", "console.listen=127.0.0.1:0", "console")
    with running(tmp_path, *no_login, **addresses) as (console, log):
        first = said(console)
        address = first.removeprefix("console: ").strip().rstrip("/")
        answers = [httpx.get(address + page, timeout=90) for page in (*CONSOLE, *ALSO)]
        assert {answer.status_code for answer in answers} <= {200, 404}
        texts += [first, *(answer.text for answer in answers), Path(f"/proc/{console.pid}/cmdline").read_text()]
    texts.append(log.read_text())
    assert all(texts)
    assert [text for text in texts if CANARY in text] == []
