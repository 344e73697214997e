"""Delays between attempts to reconnect."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from pillarbox.core.retry import FIRST_RECONNECT_PAUSE, MAX_RECONNECT_PAUSE, Backoff


@given(failures=st.integers(1, 200), seed=st.integers())
def test_delays_grow_up_to_the_maximum_and_are_never_zero(failures: int, seed: int) -> None:
    backoff = Backoff(random.Random(seed))
    pauses = [backoff.next() for _ in range(failures)]
    assert all(FIRST_RECONNECT_PAUSE / 2 <= pause <= MAX_RECONNECT_PAUSE for pause in pauses)
    assert all(pause >= MAX_RECONNECT_PAUSE / 2 for pause in pauses[6:])


def test_a_success_resets_the_delay() -> None:
    backoff = Backoff(random.Random(1))
    for _ in range(10):
        backoff.next()
    backoff.reset()
    assert backoff.next() <= FIRST_RECONNECT_PAUSE


def test_the_first_delay_is_at_most_the_maximum() -> None:
    assert Backoff(random.Random(1), max_pause=0.01).next() <= 0.01
