"""The verification of the demo finds every kind of failure."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from apps.notifications.demo.users import Expected
from apps.notifications.demo.verification import DatabaseState, Verification, verify
from apps.notifications.domain import Audience, Channel

BY_MAIL = Expected(Audience.CUSTOMER, 1, 21, Channel.EMAIL)
IN_APP = Expected(Audience.CUSTOMER, 1, 21, Channel.IN_APP)
EXPECTED = [BY_MAIL, IN_APP]
STATE = DatabaseState(
    notifications=(BY_MAIL, IN_APP),
    ids={"mail": Channel.EMAIL, "app": Channel.IN_APP},
    delivered=frozenset({"mail", "app"}),
    statuses={"mail": "PUBLISHED", "app": "PUBLISHED"},
)


def verified(state: DatabaseState = STATE, *, mails: Counter[str] | None = None) -> Verification:
    return verify(EXPECTED, state, mails=Counter(mail=1) if mails is None else mails, requests=Counter())


def test_a_complete_run_passes() -> None:
    verification = verified()
    assert verification.ok
    assert (verification.notifications, verification.delivered, verification.duplicates) == (
        2,
        {"EMAIL": 1, "IN_APP": 1},
        0,
    )


def test_waiting_deliveries_are_counted_and_pass() -> None:
    waits = replace(STATE, delivered=frozenset({"app"}), statuses={"mail": "PENDING", "app": "PUBLISHED"})
    verification = verified(waits, mails=Counter())
    assert verification.ok
    assert verification.waiting == {"EMAIL": 1}


def test_a_duplicate_mail_is_counted() -> None:
    verification = verified(mails=Counter(mail=2))
    assert (verification.ok, verification.duplicates) == (True, 1)


@pytest.mark.parametrize(
    ("state", "mails", "finding"),
    [
        (replace(STATE, notifications=(BY_MAIL,)), {"mail": 1}, "a notification is missing"),
        (
            replace(STATE, notifications=(BY_MAIL, BY_MAIL, IN_APP)),
            {"mail": 1},
            "a notification is duplicated or unexpected",
        ),
        (
            replace(STATE, delivered=frozenset({"app"}), statuses={"mail": "FAILED", "app": "PUBLISHED"}),
            {},
            "a delivery is dead",
        ),
        (
            replace(STATE, delivered=frozenset({"app"}), statuses={"app": "PUBLISHED"}),
            {},
            "a delivery is neither completed nor pending",
        ),
        (STATE, {}, "a delivery is in the log, but no server accepted it"),
        (STATE, {"mail": 1, "spam": 1}, "a server accepted an unexpected delivery"),
    ],
)
def test_each_failure_is_found(state: DatabaseState, mails: dict[str, int], finding: str) -> None:
    [failure] = verified(state, mails=Counter(mails)).failures
    assert failure.startswith(finding)
