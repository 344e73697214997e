"""The commands of the pages for operators work as typed, each section on a store in which it finds what it is about."""

from __future__ import annotations

import json
import stat
import uuid
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pillarbox import Event
from pillarbox.admin.replay import Replay
from pillarbox.core.outcome import DELIVERED, Dead, Outcome
from pillarbox.ops.console import Role, User
from pillarbox.ops.console.users import UserEntry, write
from tests.console.accounts import HASH, PASSWORD
from tests.console.serving import serving
from tests.docs.pages import ROOT, blocks
from tests.docs.walkthrough import Reader, commands_by_section, environment
from tests.integration.cli.conftest import Stock
from tests.integration.cli.running import pillarbox
from tests.integration.consume.broker import publish, ready
from tests.servers.ports import free_port
from tests.servers.rabbitmq import RabbitMQServer
from tests.servers.waiting import wait_until

HOW_TO = ROOT / "docs/how-to"
PAGES = ("dead-letters", "replay", "inspect-events", "console")
GROUP = "3f9a1c27b0de"
QUEUE = "document.uploaded.dlq"


@dataclass(slots=True)
class Scene:
    """A folder with a store, and what differs there from the page."""

    home: Path
    stock: Stock
    request: pytest.FixtureRequest
    opened: ExitStack
    """Closed at the end of the test."""
    instead: dict[str, str] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)

    def record(self, *event_ids: str, key: str | None = None) -> None:
        self.stock.record(*(Event("order.placed", {"n": 1}, event_id=event_id, key=key) for event_id in event_ids))

    def settle(self, outcome: Outcome, *event_ids: str, to: str = "orders") -> None:
        self.record(*event_ids)
        self.stock.settle(**dict.fromkeys(event_ids, (outcome, to)))

    def statuses(self, *event_ids: str) -> list[str]:
        return self.stock.states(*event_ids)

    def confirmed(self, *commands: str) -> None:
        """These commands ask for a confirmation."""
        self.instead |= {f"$ {command}\n": f"$ {command} --yes\n" for command in commands}

    def group_of(self, destination: str) -> None:
        """The page shows another fingerprint of the group of dead letters of this destination."""
        done = pillarbox("dead", "groups", "--json", PILLARBOX_STORE=self.stock.url)
        groups = json.loads(done.stdout)["groups"]
        [self.instead[GROUP]] = [one["group"] for one in groups if one["destination"] == destination]


def dead_letters_to_list(scene: Scene) -> None:
    scene.settle(Dead(error="timeout of 30 s"), "evt-42", "evt-43")


def check_export(scene: Scene) -> None:
    lines = (scene.home / "orders.ndjson").read_text().splitlines()
    assert {json.loads(line)["event_id"] for line in lines} == {"evt-42", "evt-43"}


def dead_letters_to_retry(scene: Scene) -> None:
    scene.settle(Dead(error="refused"), "evt-42")
    scene.settle(Dead(error="timeout of 30 s"), "late-1", "late-2")
    scene.settle(Dead(error="no address"), "other", to="mailer")
    scene.confirmed(f"pillarbox dead retry --group {GROUP}")
    scene.group_of("mailer")


def check_retried(scene: Scene) -> None:
    assert scene.statuses("evt-42", "late-1", "late-2", "other") == ["PENDING"] * 4


def dead_letters_to_edit(scene: Scene) -> None:
    scene.settle(Dead(error="invalid"), "evt-42", "evt-43", "evt-44")
    (scene.home / "corrected.json").write_text('{"n": 2}')
    editor = scene.home / "editor"
    editor.write_text('#!/bin/sh\nsed -i s/1/3/ "$1"\n')
    editor.chmod(editor.stat().st_mode | stat.S_IXUSR)
    scene.variables["EDITOR"] = str(editor)
    scene.confirmed(
        "pillarbox dead edit evt-42",
        "pillarbox dead edit evt-43 --payload corrected.json --keep evt-43.before.json",
        "pillarbox dead edit evt-44 --header tenant=acme",
    )


def check_edited(scene: Scene) -> None:
    rows = scene.stock.ask("SELECT payload, headers FROM outbox_message ORDER BY event_id")
    assert [json.loads(payload)["n"] for payload, _ in rows] == [3, 2, 1]
    assert [json.loads(headers).get("tenant") for _, headers in rows] == [None, None, "acme"]
    assert json.loads((scene.home / "evt-43.before.json").read_text())["payload"] == {"n": 1}


def dead_letters_to_delete(scene: Scene) -> None:
    scene.settle(Dead(error="refused"), "evt-42")
    scene.settle(Dead(error="no address"), "other", to="mailer")
    scene.settle(Dead(error="refused"), "old", to="search")
    with scene.stock.transaction() as transaction:
        old = "UPDATE outbox_dead_letter SET dead_lettered_at = '2020-01-01T00:00:00.000Z' WHERE event_id = 'old'"
        transaction.execute(old)
    scene.confirmed("pillarbox dead discard evt-42")
    scene.group_of("mailer")


def check_deleted(scene: Scene) -> None:
    assert scene.statuses("evt-42", "other", "old") == ["", "FAILED", ""]
    assert (scene.home / "dead.ndjson.gz").stat().st_mode & 0o777 == 0o600


def dead_letters_on_the_broker(scene: Scene) -> None:
    server: RabbitMQServer = scene.request.getfixturevalue("rabbitmq_server")
    vhost = f"docs-{uuid.uuid4().hex[:12]}"
    server.add_vhosts(vhost)
    url = server.url(vhost)
    [settings] = [block for block in blocks(HOW_TO / "dead-letters.md", "toml") if "dead_letter =" in block]
    (scene.home / "pillarbox.toml").write_text(settings.replace("amqp://app@127.0.0.1:5672/%2F", url))
    publish(url, "document.uploaded.q")
    for event_id in ("evt-42", "evt-43", "evt-44"):
        publish(url, QUEUE, event_id, headers={"pillarbox-queue": "document.uploaded.q"})
    wait_until(lambda: ready(url, QUEUE) == 3, bound=90, what="dead letters on the broker")
    # The page says that the command exits with 3: there are dead letters.
    scene.instead["--max-broker-dead 0\n"] = "--max-broker-dead 0; test $? = 3\n"
    scene.variables["BROKER"] = url


def check_requeued(scene: Scene) -> None:
    url = scene.variables["BROKER"]
    wait_until(lambda: ready(url, "document.uploaded.q") == 3, bound=90, what="requeued messages")
    assert ready(url, QUEUE) == 0


def deliveries(scene: Scene) -> None:
    scene.settle(DELIVERED, "evt-001", "evt-002")
    scene.record("evt-003", key="ORDER:42")
    scene.stock.settle(**{"evt-003": (DELIVERED, "orders")})
    scene.confirmed(
        "pillarbox replay --type order.placed --since 2d --to reports --rate 200/s", "pillarbox replay --key ORDER:42"
    )


def check_replayed(scene: Scene) -> None:
    rows = scene.stock.ask("SELECT destination, count(*) FROM outbox_message GROUP BY destination ORDER BY destination")
    assert rows == [("orders", 3), ("reports", 3)]


def interrupted_replay(scene: Scene) -> None:
    scene.settle(DELIVERED, "evt-001")
    begun = scene.stock.run(lambda store: store.admin.replays.begin(Replay(), by="ada"))
    scene.instead["--resume 17"] = f"--resume {begun.number}"


def check_resumed(scene: Scene) -> None:
    assert scene.stock.ask("SELECT count(*) FROM outbox_message") == [(1,)]


def an_event(scene: Scene) -> None:
    scene.record("0193c2f0-6b1e-7c3a-9f57-3c1d2e4f5a6b", key="ORDER:42")


def refused_dead_letters(scene: Scene) -> None:
    scene.settle(Dead(error="connection refused"), "evt-1", "evt-2")
    scene.confirmed('pillarbox dead retry --destination orders --error "connection refused"')


def check_refused_are_retried(scene: Scene) -> None:
    assert scene.statuses("evt-1", "evt-2") == ["PENDING", "PENDING"]


def events_in_a_file(scene: Scene) -> None:
    line = json.dumps({"event_type": "order.paid", "payload": {"id": 42}, "event_id": "paid"})
    (scene.home / "events.ndjson").write_text(line + "\n")


def check_recorded(scene: Scene) -> None:
    assert scene.stock.ask("SELECT event_type FROM outbox_message ORDER BY id") == [("order.placed",), ("order.paid",)]


def old_deliveries(scene: Scene) -> None:
    scene.settle(DELIVERED, "old")
    with scene.stock.transaction() as transaction:
        transaction.execute("UPDATE outbox_history SET published_at = '2020-01-01T00:00:00.000Z'")


def check_archived(scene: Scene) -> None:
    [archive] = scene.home.glob("outbox-*.ndjson.gz")
    assert archive.stat().st_mode & 0o777 == 0o600
    assert scene.statuses("old") == [""]


def console(scene: Scene) -> None:
    port = free_port()
    (scene.home / "password").write_text("correct horse\n")
    # The command prompts twice on a terminal.
    scene.instead |= {"ada --role admin --payloads\n": "ada --role admin --payloads < password\n"}
    scene.variables["PILLARBOX_CONSOLE__LISTEN"] = f"127.0.0.1:{port}"


def check_users(scene: Scene) -> None:
    assert (scene.home / "pillarbox.users").read_text().startswith("ada")


def served_console(scene: Scene) -> None:
    write(scene.home / "pillarbox.users", {"ada": UserEntry(user=User(name="ada", role=Role.ADMIN), hash=HASH)})
    scene.settle(Dead(error="timeout"), "evt-1")
    base = scene.opened.enter_context(serving(scene.stock.url, scene.home))
    # curl asks for the password; --fail makes an answer such as 401 an error.
    scene.instead |= {
        "curl --user ada ": f"curl --fail --user ada:'{PASSWORD}' ",
        "https://ops.example.com/outbox": base,
    }


Step = Callable[[Scene], None]


def nothing(_: Scene) -> None:
    """Nothing is to be prepared, or to be seen afterwards in the store."""


SECTIONS: Mapping[tuple[str, str], tuple[Step, Step]] = {
    ("dead-letters", "List"): (dead_letters_to_list, check_export),
    ("dead-letters", "Retry"): (dead_letters_to_retry, check_retried),
    ("dead-letters", "Edit and retry"): (dead_letters_to_edit, check_edited),
    ("dead-letters", "Delete"): (dead_letters_to_delete, check_deleted),
    ("dead-letters", "Dead letters on the broker"): (dead_letters_on_the_broker, check_requeued),
    ("replay", "Select events"): (deliveries, nothing),
    ("replay", "Replay"): (deliveries, check_replayed),
    ("replay", "Resume"): (interrupted_replay, check_resumed),
    ("inspect-events", "Check the state"): (an_event, nothing),
    ("inspect-events", "Find an event"): (an_event, nothing),
    ("inspect-events", "Retry dead letters"): (refused_dead_letters, check_refused_are_retried),
    ("inspect-events", "Record from the shell"): (events_in_a_file, check_recorded),
    ("inspect-events", "Archive"): (old_deliveries, check_archived),
    ("console", ""): (console, check_users),
    ("console", "Use the API"): (served_console, nothing),
}


def test_every_section_with_commands_is_followed() -> None:
    assert {(page, section) for page in PAGES for section in commands_by_section(HOW_TO / f"{page}.md")} == set(
        SECTIONS
    )


@pytest.mark.parametrize(("page", "section"), SECTIONS)
def test_a_section_works_as_typed(page: str, section: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    prepare, check = SECTIONS[page, section]
    stock = Stock(f"sqlite:///{tmp_path / 'pillarbox.db'}")
    stock.run(lambda store: store.schema.apply())
    with ExitStack() as opened:
        scene = Scene(tmp_path, stock, request, opened)
        prepare(scene)
        reader = Reader(tmp_path, environment(tmp_path) | scene.variables, instead=scene.instead)
        reader.follow_text(commands_by_section(HOW_TO / f"{page}.md")[section])
        check(scene)
