"""The tag resolver: acks and nacks single, multiple, out of order."""

from hypothesis import given
from hypothesis import strategies as st

from pillarbox.transports.rabbitmq.confirms import Confirms

Answer = tuple[int, bool, bool]
"""Tag, multiple, accepted."""


def resolved(first: int, size: int, *answers: Answer) -> list[bool | None]:
    confirms = Confirms(first, size)
    for tag, multiple, accepted in answers:
        confirms.resolve(tag, multiple=multiple, accepted=accepted)
    found = [confirms.accepted(place) for place in range(size)]
    assert confirms.open == found.count(None)
    return found


def test_nothing_is_confirmed_by_itself() -> None:
    assert resolved(1, 3) == [None, None, None]


def test_what_a_full_queue_was_seen_to_answer() -> None:
    seen: list[Answer] = [
        (2, True, True),
        (3, False, True),
        (4, False, True),
        (6, False, False),
        (5, False, True),
        (7, True, False),
        (8, True, False),
    ]
    assert resolved(1, 8, *seen) == [True] * 5 + [False] * 3


def test_a_multiple_answers_only_what_is_still_open() -> None:
    assert resolved(1, 4, (2, False, False), (4, True, True)) == [True, False, True, True]


def test_the_first_answer_stands() -> None:
    assert resolved(1, 2, (1, False, True), (1, False, False), (1, True, False)) == [True, None]


def test_tag_zero_multiple_answers_everything() -> None:
    assert resolved(11, 3, (12, False, False), (0, True, True)) == [True, False, True]


def test_tags_of_another_window_change_nothing() -> None:
    assert resolved(11, 2, (10, False, True), (10, True, True), (13, False, True)) == [None, None]


def test_a_multiple_beyond_the_window_ends_with_it() -> None:
    assert resolved(11, 2, (99, True, False)) == [False, False]


def test_an_empty_window_is_done() -> None:
    assert Confirms(5, 0).open == 0


@given(
    first=st.integers(1, 2**40),
    size=st.integers(0, 40),
    steps=st.lists(st.tuples(st.integers(-5, 45), st.booleans(), st.booleans()), max_size=60),
)
def test_it_agrees_with_the_plain_reading_of_the_protocol(first: int, size: int, steps: list[Answer]) -> None:
    plain: dict[int, bool] = {}
    answers = [(max(first + offset, 1), multiple, accepted) for offset, multiple, accepted in steps]
    for tag, multiple, accepted in answers:
        for place in range(size):
            if (first + place <= tag) if multiple else (first + place == tag):
                plain.setdefault(place, accepted)
    assert resolved(first, size, *answers) == [plain.get(place) for place in range(size)]
