"""Rows that no driver and no JSON parser decodes are shown by every page and every command."""

import json
from urllib.parse import quote

import psycopg
import pytest

from tests.console.conftest import Visit
from tests.integration.cli.conftest import Stock
from tests.integration.cli.running import pillarbox

# As an installation has it that is older than its bounds.
NO_BOUNDS = """
ALTER TABLE outbox_message DROP CONSTRAINT outbox_message_times_ck, DROP CONSTRAINT outbox_message_available_ck
"""
MOMENTS = {"old": "0044-03-15 BC", "new": "20000-01-01", "ever": "-infinity", "never": "infinity"}
DEEP = '{"a":' * 3000 + "1" + "}" * 3000
HEADERS = {"deep": DEEP, "long": f'{{"n":{"9" * 5000}}}', "large": '{"n":1e400}', "list": '{"n":[1,{"a":null}]}'}
EVENTS = [*MOMENTS, *HEADERS]


@pytest.fixture
def bad(postgres_url: str) -> Stock:
    insert = "INSERT INTO outbox_message (event_id, event_type, payload, "
    with psycopg.connect(postgres_url) as connection:
        connection.execute(NO_BOUNDS)
        for event_id, moment in MOMENTS.items():
            columns = "occurred_at, recorded_at, available_at, first_failed_at, last_attempt_at"
            values = ", ".join([f"'{moment}'"] * 5)
            connection.execute(f"{insert}{columns}) VALUES ('{event_id}', 't', '{{}}', {values})".encode())
        for event_id, headers in HEADERS.items():
            connection.execute(f"{insert}headers) VALUES ('{event_id}', 't', '{{}}', %s)".encode(), (headers,))
    return Stock(postgres_url)


async def test_every_page_shows_undecodable_rows(visit: Visit, bad: Stock) -> None:
    visitor = await visit(bad)
    for path in ("/", "/events", "/keys", "/store", "/api/v1/events"):
        await visitor.page_text(path)
    listed = await visitor.page_text("/events")
    for event_id in EVENTS:
        assert event_id in listed
        assert event_id in await visitor.page_text(f"/event?id={quote(event_id)}")


def test_every_command_shows_undecodable_rows(bad: Stock) -> None:
    done = pillarbox("events", "list", "--json", PILLARBOX_STORE=bad.url)
    assert done.returncode == 0, done.stderr
    assert {event["event_id"] for event in json.loads(done.stdout)["events"]} == set(EVENTS)
    for event_id in EVENTS:
        for options in ([], ["--json"]):
            done = pillarbox("events", "show", event_id, *options, PILLARBOX_STORE=bad.url)
            assert (done.returncode, event_id in done.stdout) == (0, True), done.stderr
    done = pillarbox("events", "discard", "old", "--yes", PILLARBOX_STORE=bad.url)
    assert done.returncode == 0, done.stderr
    done = pillarbox("status", "--json", PILLARBOX_STORE=bad.url)
    assert json.loads(done.stdout)["backlog"] == len(EVENTS)
