"""What is asked of events that wait is the same from the command line as from the console."""

import json

import pytest

from tests.console.conftest import Visit
from tests.integration.cli.conftest import Stock
from tests.integration.cli.running import fresh_pillarbox

REQUESTS = "SELECT action, event_id, destination, delay FROM outbox_request ORDER BY request_id"


@pytest.mark.parametrize(
    ("arguments", "path", "fields"),
    [
        (("retry", "fresh"), "/event/act", {"id": "fresh", "destination": "", "do": "retry"}),
        (("discard", "stuck", "-y"), "/event/act", {"id": "stuck", "destination": "orders", "do": "discard"}),
        (
            ("reschedule", "--in", "10m", "--type", "order.placed", "-y"),
            "/events/decide",
            {"do": "reschedule", "delay": "10m", "type": "order.placed", "count": "1"},
        ),
    ],
)
async def test_a_command_and_a_button_ask_the_same(
    visit: Visit, with_letters: Stock, arguments: tuple[str, ...], path: str, fields: dict[str, str]
) -> None:
    done = fresh_pillarbox("events", *arguments, PILLARBOX_STORE=with_letters.url)
    assert done.returncode == 0, done.stderr
    await (await visit(with_letters)).post(path, **fields)
    by_command, by_button = with_letters.ask(REQUESTS)
    assert by_command == by_button


def test_nothing_is_asked_before_somebody_said_yes(shop: Stock) -> None:
    done = fresh_pillarbox("events", "discard", "--type", "order.placed", "--dry-run", PILLARBOX_STORE=shop.url)
    assert done.stdout == "would discard 1 event\n"
    assert fresh_pillarbox("events", "discard", "fresh", PILLARBOX_STORE=shop.url).returncode == 2
    assert shop.ask(REQUESTS) == []
    done = fresh_pillarbox("events", "retry", "--key", "k", "--json", PILLARBOX_STORE=shop.url)
    assert json.loads(done.stdout) == {"matched": 0, "whole": True, "requested": 0, "dry_run": False}


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("retry",), 2, "Name events by their ids, or give a filter."),
        (("retry", "fresh", "--type", "x"), 2, "Name events by their ids, or give a filter."),
        (("retry", "sent"), 4, "nothing of 'sent' waits"),
        (("reschedule", "fresh"), 2, "Missing option '--in'"),
    ],
)
def test_what_cannot_be_asked_is_told(shop: Stock, arguments: tuple[str, ...], code: int, said: str) -> None:
    done = fresh_pillarbox("events", *arguments, PILLARBOX_STORE=shop.url)
    assert done.returncode == code
    assert said in done.stderr
