"""The dead-letter queues of the settings, and how an operator selects one."""

from pathlib import Path

import pytest

from pillarbox.core.errors import ConfigurationError
from pillarbox.ops.broker_queues import DeadQueue, chosen_queues, known_queues
from pillarbox.ops.settings import Settings

ONE = """
[transports.rabbit]
url = "amqp://mq/"
[[transports.rabbit.queues]]
name = "documents"
dead_letter = { exchange = "dlx", queue = "dead" }
[[transports.rabbit.queues]]
name = "orders"
[[transports.rabbit.queues]]
name = "dead"
"""
TWO = """
[transports.east]
url = "amqp://east/"
queues = [{ name = "orders" }]
[transports.west]
url = "amqp://west/"
queues = [{ name = "orders" }, { name = "mail" }]
[transports.console]
url = "stdout://"
"""


def settings_of(text: str, folder: Path) -> Settings:
    file = folder / "pillarbox.toml"
    file.write_text(text, encoding="utf-8")
    return Settings.load(file, {})


def test_configured_dead_letter_queues_and_those_of_consumers(tmp_path: Path) -> None:
    assert known_queues(settings_of(ONE, tmp_path)) == [
        DeadQueue(transport="rabbit", name="dead"),
        DeadQueue(transport="rabbit", name="orders.dlq", named=False),
    ]


BY_NAME = """
[transports.rabbit]
url = "amqp://mq/"
queues = [{ name = "orders", dead_letter = { exchange = "dlx", queue = "dead" } }]
[transports.other]
url = "amqp://other/"
[destinations]
orders = { transport = "rabbit", routing_key = "orders" }
nosuch = { transport = "rabbit", routing_key = "nosuch.q" }
typed = { transport = "rabbit" }
shouted = { transport = "rabbit", exchange = "shop", routing_key = "all" }
"""


def test_dead_letter_queues_of_queues_that_destinations_name(tmp_path: Path) -> None:
    assert known_queues(settings_of(BY_NAME, tmp_path), destinations=["met"]) == [
        DeadQueue(transport="rabbit", name="dead"),
        DeadQueue(transport="rabbit", name="nosuch.q.dlq", named=False),
    ]


def test_without_routes_the_queues_of_known_event_types(tmp_path: Path) -> None:
    alone = Settings.load(None, {"PILLARBOX_TRANSPORT": "amqp://mq/"})
    [found] = known_queues(alone, destinations=["order.placed"])
    assert (found.name, found.named) == ("order.placed.dlq", False)


@pytest.mark.parametrize("text", ["", "[transports.console]\nurl = 'stdout://'", "[transports.mq]\nurl = 'amqp://mq/'"])
def test_without_rabbitmq_there_are_no_dead_letter_queues(text: str, tmp_path: Path) -> None:
    assert known_queues(settings_of(text, tmp_path)) == []


@pytest.mark.parametrize(
    ("queue", "transport", "found"),
    [
        (None, None, ["east/orders.dlq", "west/orders.dlq", "west/mail.dlq"]),
        (None, "east", ["east/orders.dlq"]),
        ("mail.dlq", None, ["west/mail.dlq"]),
        ("orders.dlq", "west", ["west/orders.dlq"]),
        ("another", "east", ["east/another"]),
    ],
)
def test_a_queue_is_selected_by_its_name(
    queue: str | None, transport: str | None, found: list[str], tmp_path: Path
) -> None:
    chosen = chosen_queues(settings_of(TWO, tmp_path), queue=queue, transport=transport)
    assert [f"{one.transport}/{one.name}" for one in chosen] == found


@pytest.mark.parametrize(
    ("text", "queue", "transport", "says"),
    [
        ("", "orders.dlq", None, "no transport with dead-letter queues is configured"),
        ("[transports.mq]\nurl = 'amqp://mq/'", None, None, "--queue NAME"),
        (TWO, None, "console", "'console' is not a transport with dead-letter queues; use east or west"),
        (TWO, "orders.dlq", None, "on east or west"),
        (TWO, "another", None, "on east or west"),
    ],
)
def test_an_unknown_or_ambiguous_queue_is_an_error(
    text: str, queue: str | None, transport: str | None, says: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigurationError, match=says):
        chosen_queues(settings_of(text, tmp_path), queue=queue, transport=transport)
