"""Each recipe consumes what a relay published, has each effect once, and acknowledges after its commit."""

import pytest

from tests.frameworks.consumers.conftest import Prepare
from tests.frameworks.consumers.recipes import RECIPES, Recipe
from tests.frameworks.consumers.shop import BOUND, Shop
from tests.servers.rabbitmq import RabbitMQServer

every_recipe = pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.title)


@every_recipe
def test_the_consumer_starts_first_and_a_duplicate_has_no_second_effect(
    shop: Shop, prepared: Prepare, recipe: Recipe, rabbitmq_server: RabbitMQServer
) -> None:
    with shop.consumer(*prepared(recipe)):
        shop.wait(lambda: shop.exists(recipe.queue), "the consumer declares its queue")
        shop.place(1, 2, 3)
        shop.relay(recipe.scheme)
        shop.wait_for_invoices(1, 2, 3)
        shop.place(1, 2, 3)
        shop.place(4)
        shop.relay(recipe.scheme)
        shop.wait_for_invoices(1, 2, 3, 4)
        shop.wait(lambda: messages(rabbitmq_server, shop, recipe) == 0, "every message is acknowledged")
    assert shop.invoices() == [1, 2, 3, 4]
    assert shop.ready(recipe.queue) == 0


@every_recipe
def test_the_relay_starts_first_and_a_consumer_that_is_killed_gets_its_event_again(
    shop: Shop, prepared: Prepare, recipe: Recipe, rabbitmq_server: RabbitMQServer
) -> None:
    shop.place(1, 2, 3)
    shop.relay(recipe.scheme)
    with shop.invoices_locked(), shop.consumer(*prepared(recipe)) as consumer:
        shop.wait_for_a_blocked_consumer()
        consumer.kill()
        consumer.wait_gone(bound=BOUND)
    assert shop.invoices() == []
    with shop.consumer(*prepared(recipe)):
        shop.wait_for_invoices(1, 2, 3)
        shop.wait(lambda: messages(rabbitmq_server, shop, recipe) == 0, "every message is acknowledged")
    assert shop.invoices() == [1, 2, 3]
    assert shop.ready(recipe.queue) == 0


@pytest.mark.parametrize("arguments", [{}, {"x-queue-type": "classic"}], ids=["no type", "classic"])
def test_the_relay_uses_a_queue_of_another_type(shop: Shop, arguments: dict[str, str]) -> None:
    shop.declare("order.placed", **arguments)
    shop.place(1)
    shop.relay()
    assert shop.ready("order.placed") == 1


def messages(server: RabbitMQServer, shop: Shop, recipe: Recipe) -> int:
    """The messages of the queue, with those that are not acknowledged yet."""
    vhost = shop.broker.rpartition("/")[2]
    found = server.evaluate(
        f"""{{ok, Queue}} = rabbit_amqqueue:lookup(rabbit_misc:r(<<"{vhost}">>, queue, <<"{recipe.queue}">>)),
        [{{messages, Count}}] = rabbit_amqqueue:info(Queue, [messages]),
        Count"""
    )
    return int(found)


def test_an_event_that_a_handler_of_faststream_publishes_is_recorded_with_its_effect(
    shop: Shop, prepared: Prepare
) -> None:
    [recipe] = [one for one in RECIPES if one.title == "FastStream"]
    shop.place(1, 2)
    shop.relay()
    with shop.consumer(*prepared(recipe)):
        shop.wait_for_invoices(1, 2)
    shop.relay()
    sent = shop.taken("invoice.sent")
    assert sorted(one.body for one in sent) == [b'{"order":1}', b'{"order":2}']
    causes = sorted(str((one.properties.headers or {})["causationId"]) for one in sent)
    assert causes == ["order-1", "order-2"]
