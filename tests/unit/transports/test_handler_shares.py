"""Shares of threads and tasks: whatever hangs, every other handler can begin a call; what is free may be used."""

from collections import Counter
from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from pillarbox.transports.handlers.transport import free_calls, total_calls


@given(most=st.integers(1, 64), count=st.integers(1, 40), data=st.data())
def test_a_handler_that_runs_nothing_can_always_begin_whatever_the_others_took(
    most: int, count: int, data: st.DataObject
) -> None:
    names = [f"h{n}" for n in range(count)]
    running: Counter[str] = Counter()
    for name in data.draw(st.lists(st.sampled_from(names), max_size=200)):
        if free_calls(name, running, names, most=most) > 0:
            running[name] += 1
    assert running.total() <= total_calls(most, count)
    assert all(free_calls(name, running, names, most=most) >= 1 for name in names if not running[name])


def test_a_handler_alone_may_use_everything() -> None:
    assert free_calls("h", {}, ["h"], most=32) == 32
    assert free_calls("h", {"h": 31}, ["h"], most=32) == 1
    assert free_calls("h", {"h": 32}, ["h"], most=32) == 0


def test_what_is_free_is_told_without_a_look_at_every_handler() -> None:
    class Asked(set[str]):
        def __iter__(self) -> Iterator[str]:
            raise AssertionError("there may be thousands")

    names = [f"h{n}" for n in range(10)]
    running = {"h0": 1, "h1": 4, "h2": 30, "of the other kind": 100}
    asked = Asked(names)
    assert [free_calls(name, running, asked, most=32) for name in names] == [0, -3, -10] + [1] * 7
    assert [free_calls(name, running, names, most=32) for name in names] == [0, -3, -10] + [1] * 7


def test_one_that_hangs_leaves_the_others_their_part() -> None:
    names = ["bad", "good"]
    assert free_calls("bad", {}, names, most=32) == 24
    assert free_calls("good", {"bad": 24}, names, most=32) == 8
