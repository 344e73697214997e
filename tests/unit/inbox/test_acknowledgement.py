"""Decisions about a message whose handling raised: retry or dead letter, attempt or deferral."""

import asyncio
import random

import pytest

from pillarbox import ExponentialBackoff, FixedDelay, NoRetry, PermanentError, RejectedError, UnavailableError
from pillarbox.core.retry import RetryPolicy
from pillarbox.core.source import Incoming
from pillarbox.inbox.acknowledgement import LONGEST_REASON, RejectMessage, RetryMessage, decide
from pillarbox.inbox.consumer import DEFAULT_RETRY
from pillarbox.inbox.dispatch import NoTransactionError

RNG = random.Random(1)


def message(attempts: int = 0, deferrals: int = 0) -> Incoming:
    return Incoming(event_id="e1", event_type="order.placed", body=b"{}", attempts=attempts, deferrals=deferrals)


def decided(
    error: BaseException, *, attempts: int = 0, deferrals: int = 0, policy: RetryPolicy = DEFAULT_RETRY
) -> RetryMessage | RejectMessage:
    return decide(error, message(attempts, deferrals), policy, RNG)


@pytest.mark.parametrize(
    "error", [ValueError("no"), RejectedError("no"), SystemExit(1), asyncio.CancelledError(), TimeoutError()], ids=repr
)
def test_any_exception_of_a_handler_counts_as_an_attempt_and_is_retried(error: BaseException) -> None:
    assert decided(error) == RetryMessage(delay=1.0, error=decided(error).error, counted=True)


def test_the_delay_grows_until_the_last_attempt() -> None:
    waits = [decided(ValueError(), attempts=attempts) for attempts in range(7)]
    assert [wait.delay if isinstance(wait, RetryMessage) else None for wait in waits] == [
        1,
        5,
        25,
        125,
        625,
        3125,
        None,
    ]


@pytest.mark.parametrize(
    "policy", [NoRetry(), FixedDelay(max_attempts=2), ExponentialBackoff(max_attempts=2)], ids=repr
)
def test_the_policy_decides_when_a_message_is_dead_lettered(policy: RetryPolicy) -> None:
    assert isinstance(decided(ValueError("no"), attempts=1, policy=policy), RejectMessage)


def test_a_permanent_error_is_dead_lettered_at_once() -> None:
    assert decided(PermanentError("no address")) == RejectMessage(error="no address")


@pytest.mark.parametrize(
    "error", [NoTransactionError("no database"), UnavailableError("the bank is unavailable")], ids=repr
)
@pytest.mark.parametrize("deferrals", [0, 3, 1000])
def test_an_outage_is_deferred_without_limit(error: Exception, deferrals: int) -> None:
    retry = decided(error, attempts=99, deferrals=deferrals, policy=NoRetry())
    assert isinstance(retry, RetryMessage)
    assert not retry.counted
    assert 1 <= retry.delay <= 30


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ValueError("first\nsecond"), "ValueError: first"),
        (ValueError(), "ValueError"),
        (ValueError("a\x00b\ud800"), "ValueError: a\\x00b\\xd800"),
        (Mute(), "Mute"),
        (UnavailableError("an error of Pillarbox"), "an error of Pillarbox"),
    ],
    ids=["first line", "no text", "characters that no broker accepts", "mute", "ours"],
)
def test_a_reason_is_one_line_that_every_broker_can_store(error: Exception, reason: str) -> None:
    assert decided(error).error == reason


def test_a_reason_has_a_maximum_length() -> None:
    assert len(decided(ValueError("x" * 10_000)).error) < LONGEST_REASON + 20
