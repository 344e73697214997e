"""The examples that are scripts: what they print is what happened."""

from __future__ import annotations

import json
from pathlib import Path

from tests.examples.running import ROOT, run
from tests.integration.rabbitmq.consumer import channel
from tests.servers.rabbitmq import RabbitMQServer

EXAMPLES = ROOT / "examples"


def test_the_first_outbox_prints_each_order_once(tmp_path: Path) -> None:
    script = str(EXAMPLES / "first_outbox.py")
    assert run(tmp_path, script) == "receipt for order 1\n"
    assert run(tmp_path, script) == "receipt for order 2\n"


def test_the_first_outbox_is_twenty_lines() -> None:
    code = (EXAMPLES / "first_outbox.py").read_text().partition("outbox, handlers = ")[2]
    assert len([line for line in code.splitlines() if line.strip()]) <= 20


def test_sqlalchemy_and_rabbitmq_deliver_what_was_committed(
    tmp_path: Path, empty_postgres_url: str, rabbitmq_server: RabbitMQServer
) -> None:
    url = rabbitmq_server.url()
    try:
        lines = run(tmp_path, str(EXAMPLES / "sqlalchemy_rabbitmq.py"), empty_postgres_url, url).splitlines()
    finally:
        with channel(url) as broker:
            broker.queue_delete("shop.billing")
            broker.exchange_delete("shop")
    assert lines[0] == "declined mallory"
    got = [line.removeprefix("billing got order.placed ") for line in lines[1:]]
    # Different orders have different keys: any order of the two will do.
    assert sorted(json.loads(body)["customer"] for body in got) == ["ada", "grace"]


def test_the_school_example_prints_its_notices(tmp_path: Path) -> None:
    lines = run(tmp_path, "-m", "examples.school").splitlines()
    assert lines[0] == "rolled back: 7 in music"
    notices = sorted(line.partition(": ")[2] for line in lines[1:])
    assert notices[0].startswith("absence notice")
    assert notices[1:] == ["mathematics: 1", "mathematics: 2"]
