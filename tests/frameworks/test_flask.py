"""examples/flask_shop in an empty folder and an environment of its own, with the commands of its README."""

import json
from pathlib import Path

from tests.frameworks.conftest import MakeEnvironment
from tests.frameworks.environment import copy_example, typed
from tests.frameworks.serving import post, running
from tests.servers.ports import free_port


def test_a_committed_order_sends_its_event_and_a_declined_one_none(
    environment: MakeEnvironment, tmp_path: Path
) -> None:
    flask, folder, port = environment("flask"), copy_example("flask_shop", tmp_path), free_port()
    install, apply, serve, order, relay = typed(folder)
    for preparation in (install, apply):
        flask.run(*preparation.words, folder=folder, environment={"PIP_NO_INDEX": "1"})
    with running(flask, *serve.words, "--port", str(port), folder=folder, variables={}, port=port):
        assert post(port, "/orders/mallory") == (403, None)
        assert json.loads(flask.run(*order.at(port), folder=folder).stdout) == {"id": 1}
    twice = "from app import create_app; create_app(); create_app()"  # as the tests of an application do
    flask.run("python", "-c", twice, folder=folder)
    sent = flask.run(*relay.words, folder=folder, environment=relay.variables)
    [event] = [json.loads(line) for line in sent.stdout.splitlines() if line.startswith("{")]
    assert (event["event_type"], event["payload"]) == ("order.placed", {"id": 1})
