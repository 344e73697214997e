"""`pillarbox status` tells how many dead letters lie on the broker, and is not held up by one that is away."""

import json
import socket
from pathlib import Path

import pytest

from tests.integration.cli.graveyard import Graveyard
from tests.integration.cli.running import pillarbox
from tests.integration.rabbitmq.consumer import channel
from tests.servers.ports import free_port


@pytest.fixture
def yard(yard: Graveyard) -> Graveyard:
    """… and a store with tables."""
    assert yard.run("schema", "apply").returncode == 0
    return yard


def test_json_has_the_depth(yard: Graveyard) -> None:
    yard.bury("e1", "e2")
    done = yard.run("status", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["broker_dead_letters"] == [
        {"transport": "rabbit", "queue": yard.dead, "depth": 2, "error": None}
    ]
    assert "exceeded" not in json.loads(done.stdout)


def test_text_has_the_depth(yard: Graveyard) -> None:
    yard.bury("e1", "e2")
    lines = yard.run("status").stdout.splitlines()
    assert lines[0].startswith("stopped: ")
    assert lines[-2:] == ["dead-letter queue\ttransport\tdepth\terror", f"{yard.dead}\trabbit\t2\t"]


@pytest.mark.parametrize(("most", "code"), [("2", 0), ("1", 3)])
def test_a_depth_beyond_the_limit_fails(yard: Graveyard, most: str, code: int) -> None:
    yard.bury("e1", "e2")
    done = yard.run("status", "--max-broker-dead", most, "--json")
    assert (done.returncode, json.loads(done.stdout)["exceeded"]) == (code, code == 3)
    assert done.stderr == (f"pillarbox: {yard.dead} has 2 dead letters, more than 1\n" if code else "")


def test_an_unavailable_broker_is_reported_and_fails_nothing(yard: Graveyard) -> None:
    closed = f"amqp://guest:canary-password@127.0.0.1:{free_port()}/"
    done = yard.run("status", PILLARBOX_TRANSPORTS__RABBIT__URL=closed)
    first, _, line = done.stdout.splitlines()
    assert (done.returncode, first.startswith("stopped: "), done.stderr) == (0, True, "")
    assert line.startswith(f"{yard.dead}\trabbit\t\tcannot connect to RabbitMQ at 127.0.0.1")
    assert "canary-password" not in done.stdout


def test_a_broker_that_does_not_respond_times_out(yard: Graveyard) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        url = f"amqp://127.0.0.1:{mute.getsockname()[1]}/"
        done = yard.run("status", "--json", PILLARBOX_TRANSPORTS__RABBIT__URL=url)
    [seen] = json.loads(done.stdout)["broker_dead_letters"]
    assert (done.returncode, seen["depth"], "within 3 s" in seen["error"]) == (0, None, True), seen
    assert done.stderr == ""


def test_an_unknown_depth_fails_with_a_limit(yard: Graveyard) -> None:
    closed = f"amqp://127.0.0.1:{free_port()}/"
    done = yard.run("status", "--max-broker-dead", "5", "--json", PILLARBOX_TRANSPORTS__RABBIT__URL=closed)
    assert (done.returncode, json.loads(done.stdout)["exceeded"]) == (1, False)
    assert f"the depth of {yard.dead} is unknown: cannot connect" in done.stderr


def test_a_queue_named_by_a_destination_is_listed(yard: Graveyard) -> None:
    (yard.folder / "pillarbox.toml").write_text(f"[destinations.orders]\nrouting_key = '{yard.work}'\n")
    yard.bury("e1")
    [seen] = json.loads(yard.run("status", "--json").stdout)["broker_dead_letters"]
    assert (seen["queue"], seen["depth"]) == (yard.dead, 1)
    assert "e1" in yard.run("dead", "broker", "list").stdout


def test_a_missing_default_queue_is_omitted(yard: Graveyard) -> None:
    with channel(yard.url) as broker:
        broker.queue_delete(yard.dead)
    done = yard.run("status", "--max-broker-dead", "0", "--json")
    assert (done.returncode, json.loads(done.stdout)["broker_dead_letters"]) == (0, [])


def test_a_missing_configured_queue_is_reported(yard: Graveyard) -> None:
    named = "{ name = 'orders', dead_letter = { exchange = '', queue = 'never-made' } }"
    (yard.folder / "pillarbox.toml").write_text(f"[transports.rabbit]\nqueues = [{named}]\n")
    assert yard.run("status").stdout.splitlines()[-1] == "never-made\trabbit\t\tthe queue does not exist yet"


def test_without_rabbitmq_a_depth_limit_is_rejected(yard: Graveyard, tmp_path: Path) -> None:
    (tmp_path / "pillarbox.toml").unlink()
    done = pillarbox("status", "--json", cwd=tmp_path, PILLARBOX_TRANSPORT="stdout://")
    assert (done.returncode, json.loads(done.stdout)["broker_dead_letters"]) == (0, [])
    refused = pillarbox("status", "--max-broker-dead", "0", cwd=tmp_path, PILLARBOX_TRANSPORT="stdout://")
    assert (refused.returncode, "name no queue" in refused.stderr) == (2, True)
