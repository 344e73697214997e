"""Webhooks in a settings file: what is read, what is rejected, and what is shown of secrets."""

from pathlib import Path

import pytest

from pillarbox.ops.wiring import make_relay, open_store, open_transports
from pillarbox.transports.webhook import WebhookTransport
from tests.unit.ops.settings.conftest import Write
from tests.unit.ops.settings.loading import load, problems

SECRET, OTHER = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
HOOKS = "[transports.hooks]\nurl = 'https://receiver.example/p4th'\n"
FILE = f"""{HOOKS}
secrets = ["{SECRET}"]
headers = {{ Authorization = "Bearer t0ken" }}
allow_networks = ["10.0.0.0/8"]
connections_per_host = 5

[destinations.a]
url = "/orders/{{aggregate_id}}"
secrets = ["{OTHER}"]
headers = {{ X-Key = "k3y" }}

[[routes]]
to = ["a"]
"""
HIDDEN = (SECRET, OTHER, "MfKQ9r8G", "AAECAwQF", "t0ken", "k3y", "p4th", "/orders")


def test_a_relay_is_made_of_the_settings(write: Write) -> None:
    settings = load(write(FILE + "[store]\nurl = 'memory://'\n"))
    transports = open_transports(settings)
    assert isinstance(transports["hooks"], WebhookTransport)
    assert transports["hooks"]._options.connections_per_host == 5
    make_relay(settings, store=open_store(settings.store), transports=transports)


def test_no_secret_is_shown(write: Write) -> None:
    settings = load(write(FILE))
    shown = "\n".join(f"{entry.name} {entry.shown!r}" for entry in settings.entries) + repr(settings)
    assert [text for text in HIDDEN if text in shown] == []
    assert "https://receiver.example/***" in shown
    assert "Authorization" in shown


def test_secrets_come_from_a_variable_or_from_a_file_that_it_names(write: Write, tmp_path: Path) -> None:
    file = write(HOOKS)
    variable = "PILLARBOX_TRANSPORTS__HOOKS__SECRETS"
    assert load(file, **{variable: f"{SECRET}, {OTHER}"}).transports["hooks"].webhook.secrets == (SECRET, OTHER)
    (tmp_path / "secret").write_text(f"{SECRET}\n")
    assert load(file, **{f"{variable}_FILE": str(tmp_path / "secret")}).transports["hooks"].webhook.secrets == (SECRET,)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (HOOKS + "secrets = ['hunter2']", "begins with whsec_"),
        (HOOKS + "secrets = 'whsec_'", "write a list of texts"),
        (HOOKS + "headers = { Content-Length = 'hunter2' }", "the header 'Content-Length' is set by the transport"),
        (HOOKS + "allow_networks = ['everything']", "'everything', which is not a network"),
        (HOOKS + "connections_per_host = 200", "more than total_connections (100)"),
        (HOOKS + "heartbeat = '5s'", "is only for rabbitmq, and this is webhook"),
        (HOOKS + "[destinations.a]\nurl = 'https://user:hunter2@host/'", "takes no user and password"),
        (HOOKS + "[destinations.a]\nurl = 'https://{key}.example/'", "the host of a webhook is fixed"),
        (HOOKS + "[destinations.a]\nordering = 'pipelined'", '"pipelined", which webhook does not support'),
    ],
)
def test_what_cannot_work_is_rejected_without_a_secret(write: Write, text: str, problem: str) -> None:
    found = problems(write(text))
    assert any(problem in one for one in found), found
    assert not any("hunter2" in one for one in found)
