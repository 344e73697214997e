"""The verdict of the demo: whatever could go wrong is found, and nothing else is."""

from __future__ import annotations

from collections.abc import Sequence

from pillarbox.ops.demo.ledger import Entry, What
from pillarbox.ops.demo.verdict import Step, Verdict, judge

COMMITTED = [Step("1", "a"), Step("2", "x"), Step("1", "b"), Step("1", "c")]


def handled(*event_ids: str, what: What = "handled") -> list[Entry]:
    orders = {step.event_id: step.order for step in COMMITTED}
    return [Entry("mailer", what, orders.get(event_id, "9"), event_id) for event_id in event_ids]


def verdict(
    entries: Sequence[Entry], *, receivers: Sequence[str] = ("mailer",), dead_letters: int = 0, most_repeats: int = 0
) -> Verdict:
    return judge(COMMITTED, entries, receivers=receivers, dead_letters=dead_letters, most_repeats=most_repeats)


def test_a_run_in_order_is_fine_however_the_orders_mix() -> None:
    assert verdict(handled("a", "b", "x", "c")).failures == ()


def test_what_was_committed_and_did_not_come_is_lost() -> None:
    found = verdict(handled("a", "x", "c"))
    assert found.accounts[0].lost == ("b",)
    assert found.failures == ("1 event never reached mailer, such as b",)


def test_every_receiver_must_get_everything() -> None:
    found = verdict(handled("a", "x", "b", "c"), receivers=("mailer", "search"))
    assert [account.ok for account in found.accounts] == [True, False]
    assert not found.ok


def test_what_was_rolled_back_and_came_nevertheless_is_a_phantom() -> None:
    found = verdict(handled("a", "x", "undone", "b", "c"))
    assert found.accounts[0].phantom == ("undone",)
    assert found.failures == ("1 event never happened, yet reached mailer, such as undone",)


def test_a_step_that_overtakes_another_of_its_order_is_disorder() -> None:
    found = verdict(handled("b", "a", "x", "c"))
    assert found.accounts[0].disordered == ("1",)
    assert found.failures == ("1 order reached mailer out of order: 1, …",)


def test_a_loss_is_not_counted_as_disorder_too() -> None:
    assert verdict(handled("a", "x", "c")).accounts[0].disordered == ()


def test_a_call_that_failed_is_no_arrival() -> None:
    entries = [*handled("a", "b", what="failed"), *handled("a", "x", "b", "c")]
    account = verdict(entries).accounts[0]
    assert (account.ok, account.failed, account.repeats) == (True, 2, 0)
    assert verdict([*handled("a", "x", "b"), *handled("c", what="failed")]).accounts[0].lost == ("c",)


def test_repeats_are_fine_as_far_as_a_kill_explains_them() -> None:
    entries = handled("a", "b", "a", "x", "c", "b")
    assert verdict(entries, most_repeats=2).ok
    assert verdict(entries, most_repeats=1).failures == ("2 repeats, where at most 1 can be explained",)


def test_what_was_refused_for_good_must_lie_in_the_dead_letters() -> None:
    entries = [*handled("a", "x", "b"), *handled("c", what="refused")]
    assert verdict(entries, dead_letters=1).ok
    assert verdict(entries, dead_letters=0).failures == ("1 event refused for good, but 0 in the dead letters",)
    assert not verdict(handled("a", "x", "b", "c"), dead_letters=1).ok
