"""The image: relay, console and consumer start as its user, respond to probes, and drain on SIGTERM."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from pillarbox import Event, Outbox
from tests.image.building import ROOT, ImageBuild
from tests.servers import processes
from tests.servers.availability import available
from tests.servers.ports import free_port
from tests.servers.postgres import PostgresServer
from tests.servers.rabbitmq import RabbitMQServer
from tests.servers.waiting import wait_until

USER = 10001


@pytest.fixture(scope="module")
def build() -> Iterator[ImageBuild]:
    assert os.geteuid() == 0, "run `make image` as root: debootstrap and chroot need it"
    folder = processes.make_folder("image")
    folder.chmod(0o755)
    yield ImageBuild(folder)
    processes.remove_folder(folder)


@pytest.fixture(scope="module")
def image(build: ImageBuild) -> str:
    return build.make_image(build.make_base())


@pytest.fixture(scope="module")
def container(build: ImageBuild, image: str) -> str:
    name = build.buildah("from", image)
    build.buildah("copy", "--quiet", name, str(ROOT / "deploy/compose/shop.py"), "/app/shop.py")
    return name


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[str, str]]:
    """The variables that name a PostgreSQL and a RabbitMQ of this test."""
    with available(lambda: PostgresServer(durable=False)) as postgres, available(RabbitMQServer) as rabbitmq:
        postgres.create_database("shop")
        yield {"PILLARBOX_STORE": postgres.url("shop"), "PILLARBOX_TRANSPORT": rabbitmq.url()}


class Running:
    """A command of the image."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path, port: int) -> None:
        self._process = process
        self._log = log
        self._port = port

    def pid(self) -> int | None:
        """The process of `pillarbox` itself, below those of buildah."""
        for pid in processes.descendants(self._process.pid):
            try:
                command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            except FileNotFoundError:  # it has ended meanwhile
                continue
            if command[0].endswith(b"/python3") and command[1].endswith(b"/bin/pillarbox"):
                return pid
        return None

    def users(self) -> set[int]:
        """The user ids of the process: real, effective, saved and of the file system."""
        lines = Path(f"/proc/{self.pid()}/status").read_text().splitlines()
        [uids] = [line.split()[1:] for line in lines if line.startswith("Uid:")]
        return {int(uid) for uid in uids}

    def get(self, path: str) -> int:
        try:
            return httpx.get(f"http://127.0.0.1:{self._port}{path}", timeout=30).status_code
        except httpx.TransportError:
            return 0

    def until_up(self, path: str) -> None:
        wait_until(lambda: self.get(path) == 200, bound=120, what=f"{path} is up: {self.log()}")

    def drain(self) -> int:
        """Send SIGTERM to the process, as an engine does, and return the exit code."""
        pid = self.pid()
        assert pid is not None
        os.kill(pid, signal.SIGTERM)
        return self._process.wait(120)

    def log(self) -> str:
        return self._log.read_text(errors="replace")


@contextmanager
def running(
    build: ImageBuild, container: str, variables: Mapping[str, str], *command: str, port: int
) -> Iterator[Running]:
    log = build.folder / f"{command[0]}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            build.command(container, variables, "pillarbox", *command), stdout=output, stderr=subprocess.STDOUT
        )
    run = Running(process, log, port)
    try:
        wait_until(lambda: run.pid() is not None or process.poll() is not None, bound=120, what="the process exists")
        yield run
    finally:
        for pid in (run.pid(), process.pid):
            if pid is not None and process.poll() is None:
                os.kill(pid, signal.SIGKILL)
        process.wait(60)


def test_the_configuration_is_that_of_a_service_without_privileges(build: ImageBuild, image: str) -> None:
    found: dict[str, Any] = build.configuration(image)
    assert found["User"] == f"{USER}:{USER}"
    assert (found["Entrypoint"], found["Cmd"], found["StopSignal"]) == (["pillarbox"], ["relay"], "SIGTERM")
    assert found["Healthcheck"]["Test"] == ["CMD", "python3", "/opt/pillarbox/probe.py"]


def test_relay_console_and_consumer_work_as_the_user_and_drain(
    build: ImageBuild, container: str, servers: Mapping[str, str]
) -> None:
    applied = subprocess.run(
        build.command(container, servers, "pillarbox", "schema", "apply"), capture_output=True, text=True, check=False
    )
    assert applied.returncode == 0, applied.stderr
    line = subprocess.run(
        build.command(container, {}, "pillarbox", "console", "user", "add", "ada", "--role", "admin", "--print"),
        input="a long password\n",
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    ports = [free_port() for _ in range(3)]
    listening = {"PILLARBOX_RELAY__LISTEN": f"127.0.0.1:{ports[0]}"}
    users = {"PILLARBOX_CONSOLE__LISTEN": f"127.0.0.1:{ports[1]}", "PILLARBOX_CONSOLE__USERS": line}
    consume = ("consume", "shop:consumer", "--listen", f"127.0.0.1:{ports[2]}")
    with (
        running(build, container, {**servers, **listening}, "relay", port=ports[0]) as relay,
        running(build, container, {**servers, **users}, "console", port=ports[1]) as console,
        running(build, container, servers, *consume, port=ports[2]) as consumer,
    ):
        for one in (relay, console, consumer):
            one.until_up("/livez")
            one.until_up("/readyz")
            assert one.users() == {USER}
        with psycopg.connect(servers["PILLARBOX_STORE"]) as connection:
            Outbox().record(connection, Event("order.placed", {"id": 1}))
        with psycopg.connect(servers["PILLARBOX_STORE"], autocommit=True) as connection:
            exists = "SELECT to_regclass('public.orders') IS NOT NULL"
            wait_until(lambda: connection.execute(exists).fetchone() == (True,), bound=120, what="an order")
            counted = "SELECT count(*) FROM orders"
            wait_until(lambda: connection.execute(counted).fetchone() == (1,), bound=120, what="one order")
        assert [one.drain() for one in (relay, console, consumer)] == [0, 0, 0]
    for one in (relay, consumer):
        assert "drained and stopped" in one.log()
        lines = [line for line in one.log().splitlines() if line.startswith("{")]
        assert {json.loads(line)["level"] for line in lines} >= {"INFO"}, "the image logs JSON"


def test_the_health_check_follows_the_process(build: ImageBuild, container: str, servers: Mapping[str, str]) -> None:
    port = free_port()
    probe = ("python3", "/opt/pillarbox/probe.py", f"http://127.0.0.1:{port}/livez")

    def healthy() -> bool:
        return subprocess.run(build.command(container, {}, *probe), capture_output=True, check=False).returncode == 0

    assert not healthy()
    listening = {"PILLARBOX_RELAY__LISTEN": f"127.0.0.1:{port}"}
    with running(build, container, {**servers, **listening}, "relay", port=port) as relay:
        relay.until_up("/livez")
        assert healthy()
        assert relay.drain() == 0
    assert not healthy()
