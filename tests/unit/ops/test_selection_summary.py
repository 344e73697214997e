"""What identifies selected events."""

from __future__ import annotations

import threading

import pytest

from pillarbox.ops.selection_summary import digest_of


@pytest.mark.parametrize(
    ("selected", "others"),
    [([1, 23], [12, 3]), ([12], [1, 2]), ([("a", "b"), 1], [("a", "b1")]), (["a\nb"], ["a", "b"])],
)
async def test_different_selections_have_different_digests(selected: list[object], others: list[object]) -> None:
    assert await digest_of(selected) != await digest_of(others)


async def test_the_order_of_a_selection_does_not_matter() -> None:
    assert await digest_of([2, 1, 3]) == await digest_of([1, 2, 3])


async def test_a_selection_is_digested_in_another_thread() -> None:
    """Half a million events would block the event loop."""
    used: set[int] = set()

    class Selected:
        def __repr__(self) -> str:
            used.add(threading.get_ident())
            return "selected"

    await digest_of([Selected()])
    assert len(used) == 1
    assert threading.get_ident() not in used
