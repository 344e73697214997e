"""What becomes of a message whose handling raised: charged or not, again or never."""

import asyncio
import random

import pytest

from pillarbox import ExponentialBackoff, FixedDelay, NoRetry, PermanentError, RejectedError, UnavailableError
from pillarbox.core.retry import RetryPolicy
from pillarbox.core.source import Incoming
from pillarbox.inbox.consumer import DEFAULT_RETRY
from pillarbox.inbox.decisions import LONGEST_REASON, Again, GivenUp, judge
from pillarbox.inbox.effects import NotBegun

CHANCE = random.Random(1)


def message(attempts: int = 0, tries: int = 0) -> Incoming:
    return Incoming(event_id="e1", event_type="order.placed", body=b"{}", attempts=attempts, tries=tries)


def verdict(
    error: BaseException, *, attempts: int = 0, tries: int = 0, policy: RetryPolicy = DEFAULT_RETRY
) -> Again | GivenUp:
    return judge(error, message(attempts, tries), policy, CHANCE)


@pytest.mark.parametrize(
    "error", [ValueError("no"), RejectedError("no"), SystemExit(1), asyncio.CancelledError(), TimeoutError()], ids=repr
)
def test_whatever_a_function_raises_is_charged_and_comes_again(error: BaseException) -> None:
    assert verdict(error) == Again(after=1.0, error=verdict(error).error, charge=True)


def test_the_wait_grows_with_the_attempts_and_ends() -> None:
    waits = [verdict(ValueError(), attempts=attempts) for attempts in range(7)]
    assert [wait.after if isinstance(wait, Again) else None for wait in waits] == [1, 5, 25, 125, 625, 3125, None]


@pytest.mark.parametrize(
    "policy", [NoRetry(), FixedDelay(max_attempts=2), ExponentialBackoff(max_attempts=2)], ids=repr
)
def test_the_policy_decides_when_it_is_over(policy: RetryPolicy) -> None:
    assert isinstance(verdict(ValueError("no"), attempts=1, policy=policy), GivenUp)


def test_a_permanent_error_is_over_at_once() -> None:
    assert verdict(PermanentError("no address")) == GivenUp(error="no address")


@pytest.mark.parametrize("error", [NotBegun("no database"), UnavailableError("the bank is away")], ids=repr)
@pytest.mark.parametrize("tries", [0, 3, 1000])
def test_what_is_nobodys_fault_is_never_charged_and_never_over(error: Exception, tries: int) -> None:
    again = verdict(error, attempts=99, tries=tries, policy=NoRetry())
    assert isinstance(again, Again)
    assert not again.charge
    assert 1 <= again.after <= 30


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("it cannot say what it is")


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ValueError("first\nsecond"), "ValueError: first"),
        (ValueError(), "ValueError"),
        (ValueError("a\x00b\ud800"), "ValueError: a\\x00b\\xd800"),
        (Mute(), "Mute"),
        (UnavailableError("ours speak for themselves"), "ours speak for themselves"),
    ],
    ids=["first line", "no text", "what no broker takes", "mute", "ours"],
)
def test_a_reason_is_one_line_that_any_broker_keeps(error: Exception, told: str) -> None:
    assert verdict(error).error == told


def test_a_reason_has_an_end() -> None:
    assert len(verdict(ValueError("x" * 10_000)).error) < LONGEST_REASON + 20
