"""A shop per test, and the programs of the recipes, built once for the run."""

import uuid
from collections.abc import Callable, Sequence
from pathlib import Path

import psycopg
import pytest

from tests.frameworks.consumers.recipes import Recipe, tables
from tests.frameworks.consumers.shop import Shop
from tests.servers.availability import available
from tests.servers.rabbitmq import RabbitMQServer

Program = tuple[Sequence[str], Path]
Prepare = Callable[[Recipe], Program]


@pytest.fixture
def shop(postgres_url: str, rabbitmq_server: RabbitMQServer) -> Shop:
    """A database with all tables, and an empty virtual host."""
    vhost = f"shop-{uuid.uuid4().hex[:12]}"
    rabbitmq_server.add_vhosts(vhost)
    with psycopg.connect(postgres_url) as connection:
        for table in tables():
            connection.execute(table.encode())
    return Shop(postgres_url, rabbitmq_server.url(vhost))


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Prepare:
    """`prepared(recipe)` is the command of a recipe and the folder to run it in."""
    programs: dict[str, Program] = {}

    def prepare(recipe: Recipe) -> Program:
        if recipe.title not in programs:
            folder = tmp_path_factory.mktemp("recipe")
            programs[recipe.title] = (available(lambda: recipe.prepare(folder)), folder)
        return programs[recipe.title]

    return prepare
