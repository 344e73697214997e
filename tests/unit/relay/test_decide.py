"""The decision for each result: delivered, retried, deferred or dead-lettered, and the text of its error."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pillarbox.core.errors import NackedError, PermanentError, RejectedError, SendError, UnavailableError
from pillarbox.core.message import Message
from pillarbox.core.outcome import DELIVERED, MAX_ERROR_LENGTH, Dead, Outcome, Retry, error_text
from pillarbox.core.transport import SendResult
from pillarbox.relay.decide import OUTAGE, Outage, decide, no_route
from pillarbox.retry_policies import ExponentialBackoff
from tests.unit.relay.messages import Fixed, message

POLICY = ExponentialBackoff(base="10s", max_delay="1h", jitter="none", max_attempts=11)
RNG = random.Random(3)


def decided(result: SendResult, about: Message | None = None, **settings: Any) -> Outcome | Outage:
    usual: dict[str, Any] = {
        "policy": POLICY,
        "rng": RNG,
        "on_exhausted": "skip",
        "outages": "wait",
        "alone": False,
    }
    return decide(about or message(), result, **usual | settings)


def test_an_accepted_message_is_delivered() -> None:
    assert decided(None) is DELIVERED


def test_a_rejection_counts_an_attempt_and_is_retried_by_the_policy() -> None:
    assert decided(RejectedError("no queue")) == Retry(delay=10, error="RejectedError: no queue", counted=True)
    assert decided(RejectedError("no queue"), message(attempts=3)) == Retry(delay=80, error="RejectedError: no queue")


def test_deferrals_do_not_lengthen_the_delay_of_a_rejection() -> None:
    assert decided(RejectedError("no"), message(deferrals=500)) == Retry(delay=10, error="RejectedError: no")


def test_the_last_allowed_attempt_is_dead_lettered() -> None:
    assert decided(RejectedError("no"), message(attempts=9)) == Retry(delay=3600, error="RejectedError: no")
    assert decided(RejectedError("no"), message(attempts=10)) == Dead(
        error="RejectedError: no", block=False, counted=True
    )


def test_a_permanent_error_is_dead_lettered_at_the_first_attempt() -> None:
    assert decided(PermanentError("too large")) == Dead(error="PermanentError: too large", counted=True)


@pytest.mark.parametrize("result", [PermanentError("no"), RejectedError("no")])
def test_a_dead_letter_blocks_its_key_if_configured(result: SendResult) -> None:
    outcome = decided(result, message(attempts=10), on_exhausted="block")
    assert isinstance(outcome, Dead)
    assert outcome.block


@pytest.mark.parametrize("outages", ["wait", "count"])
@pytest.mark.parametrize("alone", [False, True])
def test_a_nack_never_counts_an_attempt(outages: str, alone: bool) -> None:
    for deferrals in (0, 7, 10_000):
        outcome = decided(
            NackedError("queue full"), message(attempts=10, deferrals=deferrals), outages=outages, alone=alone
        )
        assert isinstance(outcome, Retry)
        assert not outcome.counted


def test_delays_after_nacks_grow_up_to_a_minute() -> None:
    longest = [decided(NackedError("full"), message(deferrals=deferrals), rng=Fixed(1)) for deferrals in range(8)]
    assert [outcome.delay for outcome in longest if isinstance(outcome, Retry)] == [1, 2, 4, 8, 16, 32, 60, 60]


def test_an_unavailable_destination_counts_no_attempt() -> None:
    assert decided(UnavailableError("connection refused")) is OUTAGE
    assert decided(UnavailableError("connection refused"), message(attempts=10, deferrals=10_000)) is OUTAGE


def test_outages_count_attempts_if_configured() -> None:
    error = UnavailableError("connection refused")
    assert decided(error, outages="count") == Retry(delay=10, error="UnavailableError: connection refused")
    outcome = decided(error, message(attempts=10), outages="count", on_exhausted="block")
    assert outcome == Dead(error="UnavailableError: connection refused", block=True)


def test_a_message_that_fails_alone_in_its_batch_counts_an_attempt() -> None:
    assert decided(UnavailableError("timeout"), alone=True) == Retry(delay=10, error="UnavailableError: timeout")


def test_an_unknown_error_counts_as_a_rejection() -> None:
    assert decided(SendError("odd")) == Retry(delay=10, error="SendError: odd")


def test_a_subclass_is_decided_like_its_parent() -> None:
    class InvalidInvoice(PermanentError):
        pass

    assert decided(InvalidInvoice("no vat id")) == Dead(error="InvalidInvoice: no vat id")


answers = st.sampled_from([None, RejectedError("r"), PermanentError("p"), NackedError("n"), UnavailableError("u")])


@given(answers, st.integers(0, 10**6), st.integers(0, 10**6), st.booleans(), st.sampled_from(["skip", "block"]))
def test_only_rejections_count_attempts_or_dead_letter(
    result: SendResult, attempts: int, deferrals: int, alone: bool, on_exhausted: str
) -> None:
    outcome = decided(result, message(attempts=attempts, deferrals=deferrals), alone=alone, on_exhausted=on_exhausted)
    at_fault = isinstance(result, RejectedError) or (alone and isinstance(result, UnavailableError))
    if isinstance(outcome, Dead) or (isinstance(outcome, Retry) and outcome.counted):
        assert at_fault
        assert not isinstance(result, NackedError)


def test_a_message_without_route_is_deferred_for_an_hour_then_dead_lettered() -> None:
    waited: list[float] = []
    while isinstance(outcome := no_route(message(deferrals=len(waited)), RNG, on_exhausted="skip"), Retry):
        assert not outcome.counted
        waited.append(outcome.delay)
    assert waited[:8] == [1, 2, 4, 8, 16, 32, 60, 60]
    assert 3600 <= sum(waited) < 3660
    error = "no route for 'order.placed' of 'ORDER'; add it, or discard the event"
    assert outcome == Dead(error=error, counted=False)


def test_an_unknown_destination_is_named() -> None:
    outcome = no_route(message(destination="mailer"), RNG, on_exhausted="skip")
    assert isinstance(outcome, Retry)
    assert "'mailer' is not configured on this relay" in outcome.error


def test_a_message_without_route_blocks_its_key_if_configured() -> None:
    outcome = no_route(message(deferrals=10_000), RNG, on_exhausted="block")
    assert isinstance(outcome, Dead)
    assert outcome.block


def test_an_error_has_type_and_text() -> None:
    assert error_text(UnavailableError("connection refused")) == "UnavailableError: connection refused"
    assert error_text(RejectedError()) == "RejectedError"


def test_the_text_of_an_error_is_printable_and_bounded() -> None:
    assert error_text(RejectedError("a\x00b\ud800")) == "RejectedError: a\\x00b\\xd800"
    assert len(error_text(RejectedError("x" * 100_000))) <= MAX_ERROR_LENGTH


def test_an_error_without_text_is_described() -> None:
    class Mute(RejectedError):
        def __str__(self) -> str:
            raise RuntimeError("never mind")

    assert error_text(Mute()) == "Mute: (no error text: RuntimeError)"
