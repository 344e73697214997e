"""One answer per message: the first stands, also where a whole window is accepted at once."""

from pillarbox.core.errors import RejectedError, UnavailableError
from pillarbox.testing.conformance.transports import outgoing
from pillarbox.transports.rabbitmq import RabbitMQTransport
from pillarbox.transports.rabbitmq.publication import Answers, Publication

PUBLICATIONS = [
    Publication(place, outgoing(f"e{place}", RabbitMQTransport.to(routing_key="q")), "", "q") for place in range(3)
]


def test_everything_is_accepted_at_once() -> None:
    answers = Answers(3)
    answers.accept(PUBLICATIONS)
    assert answers.results() == [None] * 3
    assert answers.without(PUBLICATIONS) == []
    answers.close(PUBLICATIONS, UnavailableError("too late"))
    assert answers.results() == [None] * 3


def test_accepting_all_leaves_an_earlier_answer_alone() -> None:
    answers, refusal = Answers(3), RejectedError("no")
    answers.answer(1, refusal)
    answers.accept(PUBLICATIONS)
    assert answers.results() == [None, refusal, None]


def test_accepting_some_leaves_the_others_open() -> None:
    answers = Answers(3)
    answers.accept(PUBLICATIONS[:2])
    assert answers.without(PUBLICATIONS) == PUBLICATIONS[2:]
    assert answers.results()[:2] == [None, None]
    assert isinstance(answers.results()[2], UnavailableError)
