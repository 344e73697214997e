"""Errors that differ only in values of the event form one group."""

import threading
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pillarbox.admin.dead_letters import DeadLetterFilter
from pillarbox.core.event import Event
from pillarbox.core.outcome import Dead
from pillarbox.ops import dead_letter_groups
from pillarbox.ops.dead_letter_groups import dead_letters_of, fingerprint, groups, is_fingerprint, page_of, reason_of
from pillarbox.record import Outbox
from pillarbox.stores.memory import MemoryStore
from pillarbox.testing.conformance.lane_owner import Owner
from pillarbox.testing.lookup import dead_letters

SAME = [
    ("order 42 is gone", "order 7 is gone"),
    ("took 30.5 s", "took 3 s"),
    ("no stock for 'red shoe'", "no stock for 'blue, small shoe'"),
    ('KeyError: "a"', 'KeyError: "b \\" c"'),
    ("KeyError: `a`", "KeyError: `b`"),
    ("unknown 0193c2f0-6b1e-7c3a-9f57-3c1d2e4f5a6b", "unknown 6F9619FF-8B86-D011-B42D-00C04FC964FF"),
    ("<Order at 0x7f21aa>", "<Order at 0x10>"),
    ("digest 9f86d081884c7d65 differs", "digest 60303ae22b998861bce3 differs"),
    ("token 01J9ZK3ABCDEFGH1234XYZ expired", "token 9WXQKK3ABCDEFGH1234ABC expired"),
    ("10.0.0.1:5672 refused", "192.168.17.4:5673 refused"),
    ("[::1]:5672 refused", "[fe80::17]:5672 refused"),
    ("no host mq-1.example.org:5672", "no host mq.example.com:5671"),
    ("POST https://a.example.org/orders/1 failed", "POST http://b.example.org/ failed"),
    ("eve@example.org has no mailbox", "bob.ohara+x@mail.example.com has no mailbox"),
    ("due 2026-11-30T09:12:33.123Z", "due 2025-01-01 10:00"),
    ("two  lines\nof text", "two lines of\ttext"),
]

OTHERS = ["refused", "order is gone", "it's late", "don't know", "KeyError: customer", "handlers.py:42", "a: b: c"]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_errors_that_differ_in_values_form_one_group(one: str, other: str) -> None:
    assert reason_of(one) == reason_of(other)
    assert fingerprint("t", "d", one) == fingerprint("t", "d", other)


def test_different_errors_form_different_groups() -> None:
    assert len({reason_of(error) for error in OTHERS}) == len(OTHERS)


def test_only_the_first_thousand_characters_count() -> None:
    quoted = f"'{'a' * 480}' " * 3
    assert reason_of(f"{quoted}is gone") == reason_of(f"{quoted}was never there")


def test_type_and_destination_belong_to_a_group() -> None:
    assert len({fingerprint("a", "b", "no"), fingerprint("b", "a", "no"), fingerprint("ab", "", "no")}) == 3


def test_a_fingerprint_is_the_same_in_every_release() -> None:
    assert fingerprint("order.placed", "orders", "order 42 is gone") == "1c3ecd25ce5d"


def test_a_fingerprint_is_recognized() -> None:
    assert is_fingerprint(fingerprint("a", "b", "c"))
    assert not any(map(is_fingerprint, ["", "123", "1c3ecd25ce5", "1c3ecd25ce5da", "1C3ECD25CE5D", "1c3ecd25ce5g"]))


@given(st.text(max_size=3000))
def test_every_error_has_a_short_pattern(error: str) -> None:
    assert len(reason_of(error)) <= 200
    assert is_fingerprint(fingerprint("t", "d", error))


async def store_with(*errors: str) -> MemoryStore:
    store = MemoryStore()
    owner = await Owner.of(store)
    for number, error in enumerate(errors):
        with store.transaction() as transaction:
            Outbox().record(transaction, Event("order.placed", {}, event_id=f"evt-{number}"))
        await owner.settle(Dead(error=error), *await owner.ready(), to="orders")
    return store


async def test_the_largest_group_is_first_with_its_newest_dead_letter_as_example() -> None:
    store = await store_with("order 1 is gone", "refused", "order 2 is gone")
    found, whole = await groups(store, DeadLetterFilter())
    assert [(group.reason, group.count) for group in found] == [("order <n> is gone", 2), ("refused", 1)]
    first = found[0]
    assert (first.event_type, first.destination, first.example.event_id) == ("order.placed", "orders", "evt-2")
    assert first.first_at < first.last_at <= datetime.now(UTC)
    assert first.fingerprint == fingerprint("order.placed", "orders", "order 9 is gone")
    assert whole


@pytest.mark.parametrize(("most", "count", "whole"), [(1, 1, False), (2, 2, False), (3, 3, True), (9, 3, True)])
async def test_the_number_of_dead_letters_read_is_limited(most: int, count: int, whole: bool) -> None:
    store = await store_with("no", "no", "no")
    found = await groups(store, DeadLetterFilter(), most=most)
    assert ([group.count for group in found.groups], found.complete) == ([count], whole)


async def test_groups_contain_only_matching_dead_letters() -> None:
    store = await store_with("a", "b")
    assert [group.reason for group in (await groups(store, DeadLetterFilter(error="b"))).groups] == ["b"]
    assert await groups(store, DeadLetterFilter(destination="nowhere")) == ([], True)


async def test_all_dead_letters_of_a_group_are_found() -> None:
    store = await store_with("order 1 is gone", "refused", "order 2 is gone")
    name = fingerprint("order.placed", "orders", "order 7 is gone")
    numbers = [dead_letter.id for dead_letter in await dead_letters(store) if "gone" in dead_letter.error]
    found = [one.id async for batch in dead_letters_of(store, DeadLetterFilter(), name) for one in batch]
    assert found == numbers


async def test_errors_are_grouped_on_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: set[threading.Thread] = set()

    def noted(*about: str) -> str:
        threads.add(threading.current_thread())
        return fingerprint(*about)

    store = await store_with("a", "b")
    monkeypatch.setattr(dead_letter_groups, "fingerprint", noted)
    await groups(store, DeadLetterFilter())
    assert [one async for batch in dead_letters_of(store, DeadLetterFilter(), "0" * 12) for one in batch] == []
    assert (await page_of(store, DeadLetterFilter(), "0" * 12, limit=5, before=None, queries=1)).dead_letters == []
    assert threads
    assert threading.main_thread() not in threads
