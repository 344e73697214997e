"""`pillarbox status` shows the dead letters on the broker, and an unavailable broker does not delay it."""

import json
import socket
from pathlib import Path

import pytest

from tests.integration.cli.running import pillarbox
from tests.integration.cli.work_queue import WorkQueue
from tests.integration.rabbitmq.consumer import channel
from tests.servers.ports import free_port


@pytest.fixture
def work_queue(work_queue: WorkQueue) -> WorkQueue:
    """The work queue, with a store."""
    assert work_queue.run("schema", "apply").returncode == 0
    return work_queue


def test_json_has_the_depth(work_queue: WorkQueue) -> None:
    work_queue.dead_letter("e1", "e2")
    done = work_queue.run("status", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["broker_dead_letters"] == [
        {"transport": "rabbit", "queue": work_queue.dead, "depth": 2, "error": None}
    ]
    assert "exceeded" not in json.loads(done.stdout)


def test_text_has_the_depth(work_queue: WorkQueue) -> None:
    work_queue.dead_letter("e1", "e2")
    lines = work_queue.run("status").stdout.splitlines()
    assert lines[0].startswith("stopped: ")
    assert lines[-2:] == ["dead-letter queue\ttransport\tdepth\terror", f"{work_queue.dead}\trabbit\t2\t"]


@pytest.mark.parametrize(("most", "code"), [("2", 0), ("1", 3)])
def test_a_depth_beyond_the_limit_fails(work_queue: WorkQueue, most: str, code: int) -> None:
    work_queue.dead_letter("e1", "e2")
    done = work_queue.run("status", "--max-broker-dead", most, "--json")
    assert (done.returncode, json.loads(done.stdout)["exceeded"]) == (code, code == 3)
    assert done.stderr == (f"pillarbox: {work_queue.dead} has 2 dead letters, more than 1\n" if code else "")


def test_an_unavailable_broker_is_reported_and_fails_nothing(work_queue: WorkQueue) -> None:
    closed = f"amqp://guest:canary-password@127.0.0.1:{free_port()}/"
    done = work_queue.run("status", PILLARBOX_TRANSPORTS__RABBIT__URL=closed)
    first, _, line = done.stdout.splitlines()
    assert (done.returncode, first.startswith("stopped: "), done.stderr) == (0, True, "")
    assert line.startswith(f"{work_queue.dead}\trabbit\t\tcannot connect to RabbitMQ at 127.0.0.1")
    assert "canary-password" not in done.stdout


def test_a_broker_that_does_not_respond_times_out(work_queue: WorkQueue) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        url = f"amqp://127.0.0.1:{mute.getsockname()[1]}/"
        done = work_queue.run("status", "--json", PILLARBOX_TRANSPORTS__RABBIT__URL=url)
    [seen] = json.loads(done.stdout)["broker_dead_letters"]
    assert (done.returncode, seen["depth"], "within 3 s" in seen["error"]) == (0, None, True), seen
    assert done.stderr == ""


def test_an_unknown_depth_fails_with_a_limit(work_queue: WorkQueue) -> None:
    closed = f"amqp://127.0.0.1:{free_port()}/"
    done = work_queue.run("status", "--max-broker-dead", "5", "--json", PILLARBOX_TRANSPORTS__RABBIT__URL=closed)
    assert (done.returncode, json.loads(done.stdout)["exceeded"]) == (1, False)
    assert f"the depth of {work_queue.dead} is unknown: cannot connect" in done.stderr


def test_a_queue_named_by_a_destination_is_listed(work_queue: WorkQueue) -> None:
    (work_queue.folder / "pillarbox.toml").write_text(f"[destinations.orders]\nrouting_key = '{work_queue.work}'\n")
    work_queue.dead_letter("e1")
    [seen] = json.loads(work_queue.run("status", "--json").stdout)["broker_dead_letters"]
    assert (seen["queue"], seen["depth"]) == (work_queue.dead, 1)
    assert "e1" in work_queue.run("dead", "broker", "list").stdout


def test_a_missing_default_queue_is_omitted(work_queue: WorkQueue) -> None:
    with channel(work_queue.url) as broker:
        broker.queue_delete(work_queue.dead)
    done = work_queue.run("status", "--max-broker-dead", "0", "--json")
    assert (done.returncode, json.loads(done.stdout)["broker_dead_letters"]) == (0, [])


def test_a_missing_configured_queue_is_reported(work_queue: WorkQueue) -> None:
    named = "{ name = 'orders', dead_letter = { exchange = '', queue = 'never-made' } }"
    (work_queue.folder / "pillarbox.toml").write_text(f"[transports.rabbit]\nqueues = [{named}]\n")
    assert work_queue.run("status").stdout.splitlines()[-1] == "never-made\trabbit\t\tthe queue does not exist yet"


def test_without_rabbitmq_a_depth_limit_is_rejected(work_queue: WorkQueue, tmp_path: Path) -> None:
    (tmp_path / "pillarbox.toml").unlink()
    done = pillarbox("status", "--json", cwd=tmp_path, PILLARBOX_TRANSPORT="stdout://")
    assert (done.returncode, json.loads(done.stdout)["broker_dead_letters"]) == (0, [])
    refused = pillarbox("status", "--max-broker-dead", "0", cwd=tmp_path, PILLARBOX_TRANSPORT="stdout://")
    assert (refused.returncode, "name no queue" in refused.stderr) == (2, True)
