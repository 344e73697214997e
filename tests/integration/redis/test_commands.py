"""The command line with Redis as the only transport of the settings."""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pillarbox import Event, Outbox
from tests.integration.cli.running import pillarbox
from tests.integration.redis.reading import entries, ids
from tests.servers.redis import RedisServer

SETTINGS = """
[store]
url = "{store}"

[transports.redis]
url = "{redis}"

[destinations.orders]
stream = "{stream}"
max_length = 1000
ordering = "pipelined"

[[routes]]
to = ["orders"]
"""


class Shop:
    """A folder with settings and a SQLite file with tables."""

    def __init__(self, folder: Path, database: Path, server: RedisServer, stream: str) -> None:
        self.folder = folder
        self.database = database
        text = SETTINGS.format(store=f"sqlite:///{database}", redis=server.url(), stream=stream)
        (folder / "pillarbox.toml").write_text(text)

    def run(self, *arguments: str) -> str:
        done = pillarbox(*arguments, cwd=self.folder)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def json(self, *arguments: str) -> Any:
        return json.loads(self.run(*arguments, "--json"))

    def record(self, *events: Event) -> None:
        with closing(sqlite3.connect(self.database, isolation_level="IMMEDIATE")) as connection, connection:
            Outbox().record(connection, *events)


@pytest.fixture
def shop(sqlite_template: Path, tmp_path: Path, redis_server: RedisServer, stream: str) -> Shop:
    return Shop(tmp_path, Path(shutil.copy(sqlite_template, tmp_path / "shop.db")), redis_server, stream)


def test_a_relay_of_the_settings_sends_to_the_stream(shop: Shop, redis_server: RedisServer, stream: str) -> None:
    shop.record(*(Event("order.placed", {"n": n}, event_id=f"e{n}", key="k") for n in range(20)))
    shop.run("relay", "--until-empty")
    assert ids(redis_server, stream) == [f"e{n}" for n in range(20)]


def test_dead_letters_are_counted_listed_and_requeued(shop: Shop, redis_server: RedisServer, stream: str) -> None:
    with redis_server.client() as client:
        client.xgroup_create(f"{stream}.billing.retry", "billing", mkstream=True)
        for number in range(2):
            notes = {"pillarbox-reason": "no address", "pillarbox-queue": f"{stream}.billing.retry"}
            client.xadd(
                f"{stream}.dlq", {"id": f"e{number}", "type": "t", "body": "{}", "pillarbox-attempts": 7, **notes}
            )
    [queue] = [one for one in shop.json("status")["broker_dead_letters"] if one["queue"] == f"{stream}.dlq"]
    assert queue["depth"] == 2
    listed = shop.json("dead", "broker", "list")["dead_letters"]
    assert [(one["event_id"], one["reason"], one["attempts"]) for one in listed] == [
        ("e0", "no address", 7),
        ("e1", "no address", 7),
    ]
    shop.run("dead", "broker", "requeue", "--event-id", "e1")
    assert ids(redis_server, f"{stream}.dlq") == ["e0"]
    assert ids(redis_server, f"{stream}.billing.retry") == ["e1"]


def test_the_doctor_checks_the_server(shop: Shop, redis_server: RedisServer) -> None:
    done = pillarbox("doctor", "--json", cwd=shop.folder)
    found = {one["check"]: one["result"] for one in json.loads(done.stdout)["findings"]}
    assert found["transport.reachable"] == "pass"
    assert found["transport.durability"] == "pass"
    assert found["transport.destinations"] == "pass"


def test_the_benchmark_removes_its_stream(shop: Shop, redis_server: RedisServer) -> None:
    reported = shop.json("bench", "--seconds", "1")
    assert reported["rate"] > 0
    with redis_server.client() as client:
        assert list(client.scan_iter("bench_*")) == []


def test_a_setting_of_another_transport_is_an_error(shop: Shop, stream: str) -> None:
    settings = shop.folder / "pillarbox.toml"
    settings.write_text(settings.read_text().replace(f'stream = "{stream}"', 'routing_key = "orders"'))
    done = pillarbox("config", "check", cwd=shop.folder)
    assert done.returncode != 0
    assert "routing_key" in done.stdout + done.stderr


def test_a_password_is_never_shown(shop: Shop, redis_server: RedisServer) -> None:
    settings = shop.folder / "pillarbox.toml"
    url = redis_server.url()
    settings.write_text(settings.read_text().replace(url, url.replace("127.0.0.1", "app:top-secret@127.0.0.1")))
    shop.record(Event("order.placed", {}))
    for command in (["config", "show"], ["doctor"], ["status"], ["dead", "broker", "list"]):
        done = pillarbox(*command, cwd=shop.folder)
        assert "top-secret" not in done.stdout + done.stderr, command
    assert entries(redis_server, "order.placed") == []
