"""Pauses between two attempts to reconnect."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from pillarbox.core.retry import FIRST_PAUSE, LONGEST_PAUSE, Backoff


@given(failures=st.integers(1, 200), seed=st.integers())
def test_pauses_grow_up_to_the_longest_and_never_vanish(failures: int, seed: int) -> None:
    backoff = Backoff(random.Random(seed))
    pauses = [backoff.next() for _ in range(failures)]
    assert all(FIRST_PAUSE / 2 <= pause <= LONGEST_PAUSE for pause in pauses)
    assert all(pause >= LONGEST_PAUSE / 2 for pause in pauses[6:])


def test_a_success_begins_anew() -> None:
    backoff = Backoff(random.Random(1))
    for _ in range(10):
        backoff.next()
    backoff.reset()
    assert backoff.next() <= FIRST_PAUSE


def test_the_first_pause_is_no_longer_than_the_longest() -> None:
    assert Backoff(random.Random(1), longest=0.01).next() <= 0.01
