"""Shares of threads and tasks: if one handler hangs, every other can still start a call."""

from collections import Counter
from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from pillarbox.transports.shares import free_calls, total_calls


@given(most=st.integers(1, 64), count=st.integers(1, 40), data=st.data())
def test_an_idle_handler_can_always_start_a_call(most: int, count: int, data: st.DataObject) -> None:
    names = [f"h{n}" for n in range(count)]
    running: Counter[str] = Counter()
    for name in data.draw(st.lists(st.sampled_from(names), max_size=200)):
        if free_calls(name, running, names, limit=most) > 0:
            running[name] += 1
    assert running.total() <= total_calls(most, count)
    assert all(free_calls(name, running, names, limit=most) >= 1 for name in names if not running[name])


def test_a_single_handler_can_use_all_threads() -> None:
    assert free_calls("h", {}, ["h"], limit=32) == 32
    assert free_calls("h", {"h": 31}, ["h"], limit=32) == 1
    assert free_calls("h", {"h": 32}, ["h"], limit=32) == 0


def test_free_capacity_is_known_without_iterating_handlers() -> None:
    class Asked(set[str]):
        def __iter__(self) -> Iterator[str]:
            raise AssertionError("there may be thousands")

    names = [f"h{n}" for n in range(10)]
    running = {"h0": 1, "h1": 4, "h2": 30, "of the other kind": 100}
    asked = Asked(names)
    assert [free_calls(name, running, asked, limit=32) for name in names] == [0, -3, -10] + [1] * 7
    assert [free_calls(name, running, names, limit=32) for name in names] == [0, -3, -10] + [1] * 7


def test_a_handler_that_hangs_leaves_the_others_their_share() -> None:
    names = ["bad", "good"]
    assert free_calls("bad", {}, names, limit=32) == 24
    assert free_calls("good", {"bad": 24}, names, limit=32) == 8
