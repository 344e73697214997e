"""examples/fastapi_shop in an empty folder and its own environment, with the commands of its README.

The relay runs as a process and in the application.
"""

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from pika.exceptions import ChannelClosedByBroker

from tests.frameworks.conftest import MakeEnvironment
from tests.frameworks.environment import Environment, copy_example, typed, typed_inline
from tests.frameworks.serving import BOUND, post, running
from tests.integration.rabbitmq.consumer import Taken, channel, take_all
from tests.servers.ports import free_port
from tests.servers.rabbitmq import RabbitMQServer
from tests.servers.waiting import wait_until


class Shop:
    """A copy of the example with its database and its broker."""

    def __init__(self, environment: Environment, folder: Path, database: str, broker: str) -> None:
        self.environment, self.folder, self.broker = environment, folder, broker
        self.variables = {
            "DATABASE_URL": database.replace("postgresql://", "postgresql+asyncpg://"),
            "PILLARBOX_TRANSPORT": broker,
        }
        install, *exports, self.migrate, self.serve, self.relay, place, ship, self.list = typed(folder)
        self.install, self.orders = install, (place, ship)
        exported = [export.words[1].partition("=")[0] for export in exports if export.words[0] == "export"]
        assert exported == list(self.variables)

    def run(self, *command: str) -> str:
        variables = self.variables | {"PIP_NO_INDEX": "1"}
        return self.environment.run(*command, folder=self.folder, environment=variables).stdout

    def statuses(self) -> list[str]:
        listed = json.loads(self.run(*self.list.words, "--json"))
        return [event["status"] for event in listed["events"]]

    def billed(self, count: int) -> list[Taken]:
        """The next messages of the queue `billing`."""

        def have_come() -> bool:
            # A new quorum queue without a leader answers a question for its length, but closes the connection of a get.
            with suppress(ChannelClosedByBroker), channel(self.broker) as broker:
                return int(broker.queue_declare("billing", passive=True).method.message_count) >= count
            return False  # the relay has not declared the queue yet

        wait_until(have_come, bound=BOUND, what=f"{count} messages in the queue `billing`")
        return take_all(self.broker, "billing")


@pytest.fixture
def shop(
    environment: MakeEnvironment, tmp_path: Path, empty_postgres_url: str, rabbitmq_server: RabbitMQServer
) -> Iterator[Shop]:
    folder = copy_example("fastapi_shop", tmp_path)
    made = Shop(environment("fastapi"), folder, empty_postgres_url, rabbitmq_server.url())
    for preparation in (made.install, made.migrate):
        made.run(*preparation.words)
    yield made
    with channel(made.broker) as broker:
        broker.queue_delete("billing")
        broker.exchange_delete("shop.events")


def place_and_ship(shop: Shop, port: int) -> None:
    answers = [json.loads(shop.run(*order.at(port))) for order in shop.orders]
    assert answers == [{"id": 1}, {"state": "shipped"}]
    assert post(port, "/orders/mallory") == (402, None)


def check_billed(shop: Shop) -> None:
    placed, shipped = shop.billed(2)
    assert [placed.properties.type, shipped.properties.type] == ["order.placed", "order.shipped"]
    assert json.loads(placed.body) == {"id": 1, "customer": "ada"}


def test_the_relay_as_a_process_sends_what_the_application_committed(shop: Shop) -> None:
    port = free_port()
    command = (*shop.serve.words, "--port", str(port))
    with running(shop.environment, *command, folder=shop.folder, variables=shop.variables, port=port):
        place_and_ship(shop, port)
        assert shop.statuses() == ["PENDING", "PENDING"]
        with running(shop.environment, *shop.relay.words, folder=shop.folder, variables=shop.variables):
            check_billed(shop)


def test_the_relay_in_the_lifespan_sends_what_the_application_committed(shop: Shop) -> None:
    port = free_port()
    serve = typed_inline(shop.folder, "RELAY=")
    variables, command = shop.variables | serve.variables, (*serve.words, "--port", str(port))
    with running(shop.environment, *command, folder=shop.folder, variables=variables, port=port):
        place_and_ship(shop, port)
        check_billed(shop)


def test_autogenerate_leaves_the_tables_of_the_outbox_alone_and_a_downgrade_removes_them(shop: Shop) -> None:
    shop.run("alembic", "revision", "--autogenerate", "-m", "nothing", "--rev-id", "0003")
    [written] = (shop.folder / "migrations" / "versions").glob("0003*.py")
    assert "op." not in written.read_text().replace("import op", "")
    written.unlink()
    shop.run("alembic", "downgrade", "0001")
    shop.run("alembic", "upgrade", "head")
    assert shop.statuses() == []
