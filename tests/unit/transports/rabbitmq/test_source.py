"""The queues around a work queue: their names, their delays, and their declarations."""

import pytest

from pillarbox import ConfigurationError
from pillarbox.transports.rabbitmq import DeadLetterTarget, Exchange, Queue, RabbitMQSource
from pillarbox.transports.rabbitmq.topology import RETRY_DELAYS, ConsumerQueues


def test_a_consumer_has_its_named_queues() -> None:
    queues = ConsumerQueues.around("billing", RETRY_DELAYS)
    assert (queues.quarantine, queues.dead) == ("billing.quarantine", "billing.dlq")
    assert [queue.name for queue in queues.auxiliary()[2:]] == [
        "billing.wait.1s",
        "billing.wait.5s",
        "billing.wait.30s",
        "billing.wait.3min",
        "billing.wait.15min",
        "billing.wait.1h",
    ]


@pytest.mark.parametrize(
    ("after", "queue"),
    [(0, "1s"), (1, "1s"), (1.001, "5s"), (25, "30s"), (125, "3min"), (625, "15min"), (3125, "1h"), (86_400, "1h")],
)
def test_a_retry_uses_the_shortest_delay_that_is_long_enough(after: float, queue: str) -> None:
    assert ConsumerQueues.around("billing", RETRY_DELAYS).retry_queue(after) == f"billing.wait.{queue}"


def test_a_retried_message_returns_to_the_work_queue_at_least_once() -> None:
    retries = ConsumerQueues.around("billing", ["1500ms"]).auxiliary()[-1]
    assert retries.name == "billing.wait.1500ms"
    assert retries.all_arguments() == {
        "x-queue-type": "quorum",
        "x-message-ttl": 1500,
        "x-dead-letter-exchange": "",
        "x-dead-letter-routing-key": "billing",
        "x-dead-letter-strategy": "at-least-once",
        "x-overflow": "reject-publish",
    }


def test_a_work_queue_by_name_has_a_delivery_limit_and_a_configured_one_is_unchanged() -> None:
    assert ConsumerQueues.around("billing", RETRY_DELAYS).work.all_arguments() == {
        "x-queue-type": "quorum",
        "x-delivery-limit": 20,
        "x-dead-letter-exchange": "",
        "x-dead-letter-routing-key": "billing.dlq",
        "x-dead-letter-strategy": "at-least-once",
        "x-overflow": "reject-publish",
    }
    assert ConsumerQueues.around(Queue(name="billing"), RETRY_DELAYS).work == Queue(name="billing")


def test_a_configured_dead_letter_queue_is_declared_as_configured() -> None:
    work = Queue(name="billing", type="classic", dead_letter=DeadLetterTarget(exchange="dlx", queue="billing.dead"))
    declared = ConsumerQueues.around(work, ["1s"]).declarations([Exchange(name="events")])
    assert [item for item in declared if isinstance(item, Queue) and item.name == "billing.dead"] == [
        Queue(name="billing.dead", type="classic")
    ]


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"retry_delays": []}, "at least one"),
        ({"retry_delays": ["0s"]}, "would spin"),
        ({"retry_delays": ["soon"]}, "retry_delays"),
        ({"retry_delays": ["60 days"]}, "49 days"),
        ({"queue": "x" * 250}, "shorter name"),
        ({"queue": ""}, "must have a name"),
        ({"prefetch": 0}, "prefetch"),
        ({"reply_timeout": 0}, "reply_timeout"),
    ],
)
def test_invalid_settings_of_a_source_are_rejected(settings: dict[str, object], says: str) -> None:
    given: dict[str, object] = {"queue": "billing"}
    with pytest.raises(ConfigurationError, match=says):
        RabbitMQSource("amqp://mq/", **(given | settings))  # type: ignore[arg-type] # made to be wrong


def test_the_password_is_not_shown() -> None:
    shown = repr(RabbitMQSource("amqp://app:secret@mq/", queue="billing"))
    assert shown == "<RabbitMQSource 'billing' at mq:5672, virtual host '/'>"
