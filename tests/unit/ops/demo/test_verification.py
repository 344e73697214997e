"""The verification of the demo: it detects each fault and reports no others."""

from __future__ import annotations

from collections.abc import Sequence

from pillarbox.ops.demo.ledger import DemoLedgerEntry, Status
from pillarbox.ops.demo.verification import OrderStep, Verification, verify

COMMITTED = [OrderStep("1", "a"), OrderStep("2", "x"), OrderStep("1", "b"), OrderStep("1", "c")]


def handled(*event_ids: str, status: Status = "handled") -> list[DemoLedgerEntry]:
    orders = {step.event_id: step.order for step in COMMITTED}
    return [DemoLedgerEntry("mailer", status, orders.get(event_id, "9"), event_id) for event_id in event_ids]


def verification(
    entries: Sequence[DemoLedgerEntry],
    *,
    receivers: Sequence[str] = ("mailer",),
    dead_letters: int = 0,
    max_duplicates: int = 0,
) -> Verification:
    return verify(COMMITTED, entries, receivers=receivers, dead_letters=dead_letters, max_duplicates=max_duplicates)


def test_events_of_different_orders_may_interleave() -> None:
    assert verification(handled("a", "b", "x", "c")).failures == ()


def test_a_committed_event_that_did_not_arrive_is_lost() -> None:
    found = verification(handled("a", "x", "c"))
    assert found.results[0].lost == ("b",)
    assert found.failures == ("1 event lost: never reached mailer, for example b",)


def test_every_receiver_must_get_every_event() -> None:
    found = verification(handled("a", "x", "b", "c"), receivers=("mailer", "search"))
    assert [result.ok for result in found.results] == [True, False]
    assert not found.ok


def test_an_event_that_was_rolled_back_but_arrived_is_a_phantom() -> None:
    found = verification(handled("a", "x", "undone", "b", "c"))
    assert found.results[0].phantom == ("undone",)
    assert found.failures == ("1 phantom event: never committed, but reached mailer, for example undone",)


def test_an_event_that_overtakes_another_of_its_order_is_out_of_order() -> None:
    found = verification(handled("b", "a", "x", "c"))
    assert found.results[0].out_of_order == ("1",)
    assert found.failures == ("1 order reached mailer out of order, for example 1",)


def test_a_lost_event_is_not_also_out_of_order() -> None:
    assert verification(handled("a", "x", "c")).results[0].out_of_order == ()


def test_a_failed_call_is_not_an_arrival() -> None:
    entries = [*handled("a", "b", status="failed"), *handled("a", "x", "b", "c")]
    result = verification(entries).results[0]
    assert (result.ok, result.failed, result.duplicates) == (True, 2, 0)
    assert verification([*handled("a", "x", "b"), *handled("c", status="failed")]).results[0].lost == ("c",)


def test_duplicates_are_accepted_up_to_the_limit() -> None:
    entries = handled("a", "b", "a", "x", "c", "b")
    assert verification(entries, max_duplicates=2).ok
    assert verification(entries, max_duplicates=1).failures == ("2 duplicates, but at most 1 possible",)


def test_each_rejected_event_must_be_a_dead_letter() -> None:
    entries = [*handled("a", "x", "b"), *handled("c", status="rejected")]
    assert verification(entries, dead_letters=1).ok
    assert verification(entries, dead_letters=0).failures == ("1 event rejected, but 0 dead letters",)
    assert not verification(handled("a", "x", "b", "c"), dead_letters=1).ok
