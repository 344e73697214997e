"""A return carries no tag: it belongs to the first message of that id, exchange and routing key still unconfirmed."""

from pillarbox.core.errors import NackedError, RejectedError
from pillarbox.core.transport import Result
from pillarbox.testing.conformance.transports import outgoing
from pillarbox.transports.rabbitmq import RabbitMQTransport
from pillarbox.transports.rabbitmq.publication import Answers, Publication
from pillarbox.transports.rabbitmq.publisher import Window


def window(*identities: tuple[str, str, str]) -> Window:
    return Window(
        [
            Publication(place, outgoing(event_id, RabbitMQTransport.to(exchange=exchange)), exchange, routing_key)
            for place, (event_id, exchange, routing_key) in enumerate(identities)
        ],
        first_tag=1,
    )


def told(sent: Window, number: int) -> list[type[Result]]:
    answers = Answers(number)
    sent.tell(answers)
    return [type(result) for result in answers.results()]


def test_the_same_event_for_another_exchange_or_key_is_another_message() -> None:
    sent = window(("a", "x", "k"), ("a", "y", "k"), ("a", "x", "l"))
    sent.take_back(("a", "y", "k"), "NO_ROUTE (312)")
    sent.confirms.resolve(3, multiple=True, accepted=True)
    assert told(sent, 3) == [type(None), RejectedError, type(None)]


def test_of_equal_messages_the_confirmed_one_was_not_the_one_returned() -> None:
    sent = window(("a", "x", "k"), ("a", "x", "k"))
    sent.confirms.resolve(1, multiple=False, accepted=True)
    sent.take_back(("a", "x", "k"), "NO_ROUTE (312)")
    sent.confirms.resolve(2, multiple=False, accepted=True)
    assert told(sent, 2) == [type(None), RejectedError]


def test_a_return_of_nothing_we_sent_changes_nothing() -> None:
    sent = window(("a", "x", "k"))
    sent.take_back((None, "x", "k"), "NO_ROUTE (312)")
    sent.confirms.resolve(1, multiple=False, accepted=False)
    assert told(sent, 1) == [NackedError]


def test_what_is_unconfirmed_never_passes_for_accepted() -> None:
    sent = window(("a", "x", "k"), ("b", "x", "k"))
    sent.confirms.resolve(2, multiple=False, accepted=True)
    answers = Answers(2)
    sent.tell(answers)
    first, second = answers.results()
    assert first is not None
    assert second is None
