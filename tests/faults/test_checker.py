"""The checker itself: it detects every fault, and reports no others."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from pillarbox.ops.drill.checker import SOUND, WriterLedger, check


def ledger() -> WriterLedger:
    noted = WriterLedger()
    noted.commit([("k", "a"), ("other", "x"), ("k", "b"), ("k", "c")])
    noted.roll_back([("k", "undone")])
    return noted


def test_a_run_in_order_is_fine_however_the_keys_mix() -> None:
    assert check(ledger(), ["a", "b", "x", "c"]) == SOUND


def test_a_missing_event_is_lost_unless_it_is_a_dead_letter() -> None:
    assert check(ledger(), ["a", "x", "c"]).lost == ["b"]
    assert check(ledger(), ["a", "x", "c"], dead=["b"]).lost == []


def test_an_event_rolled_back_or_never_recorded_is_a_phantom() -> None:
    assert check(ledger(), ["a", "x", "b", "c", "undone", "other_session"]).phantom == ["undone", "other_session"]


def test_a_first_delivery_that_overtakes_another_is_out_of_order() -> None:
    assert check(ledger(), ["a", "c", "x", "b"]).out_of_order == ["k"]


def test_a_repeat_counts_as_a_duplicate_and_not_against_the_order() -> None:
    assert check(ledger(), ["a", "b", "a", "x", "c", "b"]) == SOUND._replace(duplicates=2)


def test_stale_writes_seen_by_the_witness_are_found() -> None:
    assert check(ledger(), ["a", "b", "x", "c"], stale=["b"]) == SOUND._replace(stale=["b"])


def test_an_effect_is_applied_once_per_committed_event() -> None:
    received = ["a", "b", "x", "c"]
    once = dict.fromkeys(received, 1)
    assert check(ledger(), received, effects=once) == SOUND
    assert check(ledger(), received, effects=once | {"b": 2}).wrong_effects == ["b"]
    assert check(ledger(), received, effects={"a": 1, "x": 1, "c": 1}).wrong_effects == ["b"]
    assert check(ledger(), received, effects=once | {"undone": 1}).wrong_effects == ["undone"]
    assert check(ledger(), ["a", "x", "c"], dead=["b"], effects={"a": 1, "x": 1, "c": 1}).wrong_effects == []


IDS = st.sampled_from([f"{key}{number}" for key in "kl" for number in range(4)])
"""Of events; the first character is the key."""


@given(
    committed=st.lists(IDS, unique=True),
    received=st.lists(IDS | st.just("invented"), max_size=12),
    dead=st.sets(IDS, max_size=2),
    effects=st.dictionaries(IDS, st.integers(1, 2)),
)
def test_whatever_is_missing_added_repeated_or_reordered_is_found(
    committed: list[str], received: list[str], dead: set[str], effects: dict[str, int]
) -> None:
    noted = WriterLedger()
    noted.commit((one[0], one) for one in committed)
    found = check(noted, received, dead=dead, effects=effects)
    assert set(found.lost) == set(committed) - set(received) - dead
    assert set(found.phantom) == set(received) - set(committed)
    arrived = [one for one in committed if one in received]
    overtaken = ((a, b) for a, b in combinations(arrived, 2) if a[0] == b[0] and received.index(a) > received.index(b))
    assert set(found.out_of_order) == {one[0] for one, _ in overtaken}
    assert found.duplicates == len(received) - len(set(received))
    once = {one for one in committed if effects.get(one) == 1}
    assert set(found.wrong_effects) == (set(committed) - once - dead) | (effects.keys() - set(committed))
