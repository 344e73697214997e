"""`pillarbox status` as a person and as a script use it."""

import json
from pathlib import Path

import psycopg
import pytest

from pillarbox import Event, Outbox
from tests.integration.cli.running import pillarbox


@pytest.fixture
def with_two_events(postgres_url: str) -> str:
    with psycopg.connect(postgres_url) as connection:
        Outbox().record(connection, Event("order.placed", {}), Event("order.placed", {}))
    return postgres_url


def test_figures_for_a_script(with_two_events: str) -> None:
    done = pillarbox("status", "--json", PILLARBOX_STORE=with_two_events)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert (seen["backlog"], seen["exact"], seen["dead"], seen["relays"]) == (2, True, 0, [])
    assert seen["oldest_seconds"] >= 0
    assert seen["lanes"][63] == {"lane": 63, "owner": None, "epoch": 0, "crashes": 0}


def test_sentences_for_a_person(with_two_events: str) -> None:
    done = pillarbox("status", PILLARBOX_STORE=with_two_events)
    first, second = done.stdout.splitlines()
    assert first.startswith("2 waiting, the oldest for ")
    assert second == "no relay is running: start one with `pillarbox relay`"


def test_without_tables_it_says_what_to_run(tmp_path: Path) -> None:
    done = pillarbox("status", cwd=tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
    assert "pillarbox schema apply" in done.stderr
