"""examples/flask_shop in an empty folder and an environment of its own."""

import json
from pathlib import Path

from tests.frameworks.conftest import MakeEnvironment
from tests.frameworks.environment import copy_example
from tests.frameworks.serving import post, running
from tests.servers.ports import free_port


def test_a_committed_order_sends_its_event_and_a_declined_one_none(
    environment: MakeEnvironment, tmp_path: Path
) -> None:
    flask, folder, port = environment("flask"), copy_example("flask_shop", tmp_path), free_port()
    flask.run("pillarbox", "schema", "apply", folder=folder)
    with running(flask, "flask", "run", "--port", str(port), folder=folder, variables={}, port=port):
        assert post(port, "/orders/mallory") == (403, None)
        assert post(port, "/orders/ada") == (201, {"id": 1})
    relay = flask.run(
        "pillarbox", "relay", "--until-empty", folder=folder, environment={"PILLARBOX_TRANSPORT": "stdout://"}
    )
    [event] = [json.loads(line) for line in relay.stdout.splitlines() if line.startswith("{")]
    assert (event["event_type"], event["payload"]) == ("order.placed", {"id": 1})
