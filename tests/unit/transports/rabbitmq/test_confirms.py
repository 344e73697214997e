"""Confirms: acks and nacks single, multiple, out of order; returns; one result per message of a batch."""

from hypothesis import given
from hypothesis import strategies as st

from pillarbox.core.errors import NackedError, RejectedError, UnavailableError
from pillarbox.core.transport import SendResult
from pillarbox.testing.conformance.transports import outgoing
from pillarbox.transports.rabbitmq import RabbitMQTransport
from pillarbox.transports.rabbitmq.confirms import BatchResults, Confirms, Publication, PublishedBatch

PUBLICATIONS = [
    Publication(position, outgoing(f"e{position}", RabbitMQTransport.to(routing_key="q")), "", "q")
    for position in range(3)
]
Confirm = tuple[int, bool, bool]
"""Tag, multiple, accepted."""


def resolved(first: int, size: int, *received: Confirm) -> list[bool | None]:
    confirms = Confirms(first, size)
    for tag, multiple, accepted in received:
        confirms.resolve(tag, multiple=multiple, accepted=accepted)
    found = [confirms.accepted(position) for position in range(size)]
    assert confirms.open == found.count(None)
    return found


def test_nothing_is_confirmed_at_first() -> None:
    assert resolved(1, 3) == [None, None, None]


def test_the_confirms_of_a_full_queue() -> None:
    seen: list[Confirm] = [
        (2, True, True),
        (3, False, True),
        (4, False, True),
        (6, False, False),
        (5, False, True),
        (7, True, False),
        (8, True, False),
    ]
    assert resolved(1, 8, *seen) == [True] * 5 + [False] * 3


def test_a_multiple_confirms_only_unconfirmed_messages() -> None:
    assert resolved(1, 4, (2, False, False), (4, True, True)) == [True, False, True, True]


def test_the_first_result_stands() -> None:
    assert resolved(1, 2, (1, False, True), (1, False, False), (1, True, False)) == [True, None]


def test_a_multiple_with_tag_zero_confirms_everything() -> None:
    assert resolved(11, 3, (12, False, False), (0, True, True)) == [True, False, True]


def test_tags_of_another_batch_change_nothing() -> None:
    assert resolved(11, 2, (10, False, True), (10, True, True), (13, False, True)) == [None, None]


def test_a_multiple_confirm_beyond_the_batch_ends_with_it() -> None:
    assert resolved(11, 2, (99, True, False)) == [False, False]


def test_an_empty_batch_is_confirmed() -> None:
    assert Confirms(5, 0).open == 0


@given(
    first=st.integers(1, 2**40),
    size=st.integers(0, 40),
    steps=st.lists(st.tuples(st.integers(-5, 45), st.booleans(), st.booleans()), max_size=60),
)
def test_it_agrees_with_a_plain_reader_of_the_protocol(first: int, size: int, steps: list[Confirm]) -> None:
    plain: dict[int, bool] = {}
    received = [(max(first + offset, 1), multiple, accepted) for offset, multiple, accepted in steps]
    for tag, multiple, accepted in received:
        for position in range(size):
            if (first + position <= tag) if multiple else (first + position == tag):
                plain.setdefault(position, accepted)
    assert resolved(first, size, *received) == [plain.get(position) for position in range(size)]


def test_a_whole_batch_is_accepted_at_once() -> None:
    results = BatchResults(3)
    results.accept(PUBLICATIONS)
    assert results.as_list() == [None] * 3
    assert results.pending(PUBLICATIONS) == []
    results.fail(PUBLICATIONS, UnavailableError("too late"))
    assert results.as_list() == [None] * 3


def test_accepting_all_keeps_earlier_results() -> None:
    results, refusal = BatchResults(3), RejectedError("no")
    results.set(1, refusal)
    results.accept(PUBLICATIONS)
    assert results.as_list() == [None, refusal, None]


def test_accepting_some_leaves_the_others_open() -> None:
    results = BatchResults(3)
    results.accept(PUBLICATIONS[:2])
    assert results.pending(PUBLICATIONS) == PUBLICATIONS[2:]
    assert results.as_list()[:2] == [None, None]
    assert isinstance(results.as_list()[2], UnavailableError)


def published(*identities: tuple[str, str, str]) -> PublishedBatch:
    return PublishedBatch(
        [
            Publication(position, outgoing(event_id, RabbitMQTransport.to(exchange=exchange)), exchange, routing_key)
            for position, (event_id, exchange, routing_key) in enumerate(identities)
        ],
        first_tag=1,
    )


def outcomes(sent: PublishedBatch, number: int) -> list[type[SendResult]]:
    results = BatchResults(number)
    sent.report(results)
    return [type(result) for result in results.as_list()]


def test_the_same_event_for_another_exchange_or_key_is_another_message() -> None:
    sent = published(("a", "x", "k"), ("a", "y", "k"), ("a", "x", "l"))
    sent.note_return(("a", "y", "k"), "NO_ROUTE (312)")
    sent.confirms.resolve(3, multiple=True, accepted=True)
    assert outcomes(sent, 3) == [type(None), RejectedError, type(None)]


def test_of_equal_messages_the_unconfirmed_one_was_returned() -> None:
    sent = published(("a", "x", "k"), ("a", "x", "k"))
    sent.confirms.resolve(1, multiple=False, accepted=True)
    sent.note_return(("a", "x", "k"), "NO_ROUTE (312)")
    sent.confirms.resolve(2, multiple=False, accepted=True)
    assert outcomes(sent, 2) == [type(None), RejectedError]


def test_a_return_of_an_unknown_message_changes_nothing() -> None:
    sent = published(("a", "x", "k"))
    sent.note_return((None, "x", "k"), "NO_ROUTE (312)")
    sent.confirms.resolve(1, multiple=False, accepted=False)
    assert outcomes(sent, 1) == [NackedError]


def test_an_unconfirmed_message_is_never_accepted() -> None:
    sent = published(("a", "x", "k"), ("b", "x", "k"))
    sent.confirms.resolve(2, multiple=False, accepted=True)
    results = BatchResults(2)
    sent.report(results)
    first, second = results.as_list()
    assert first is not None
    assert second is None
