"""A verdict that could not find anything wrong would be worth nothing."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from apps.notifications.demo.cast import Told
from apps.notifications.demo.verdict import Books, Verdict, judge
from apps.notifications.words import Audience, Channel

BY_MAIL = Told(Audience.CUSTOMER, 1, 21, Channel.EMAIL)
IN_APP = Told(Audience.CUSTOMER, 1, 21, Channel.IN_APP)
EXPECTED = [BY_MAIL, IN_APP]
BOOKS = Books(
    notifications=(BY_MAIL, IN_APP),
    ids={"mail": Channel.EMAIL, "app": Channel.IN_APP},
    delivered=frozenset({"mail", "app"}),
    statuses={"mail": "PUBLISHED", "app": "PUBLISHED"},
)


def judged(books: Books = BOOKS, *, mails: Counter[str] | None = None) -> Verdict:
    return judge(EXPECTED, books, mails=Counter(mail=1) if mails is None else mails, requests=Counter())


def test_what_is_as_it_should_be_is_fine() -> None:
    verdict = judged()
    assert verdict.ok
    assert (verdict.notifications, verdict.delivered, verdict.repeats) == (2, {"EMAIL": 1, "IN_APP": 1}, 0)


def test_what_waits_is_fine_and_counted() -> None:
    waits = replace(BOOKS, delivered=frozenset({"app"}), statuses={"mail": "PENDING", "app": "PUBLISHED"})
    verdict = judged(waits, mails=Counter())
    assert verdict.ok
    assert verdict.waiting == {"EMAIL": 1}


def test_a_mail_that_went_out_twice_is_counted() -> None:
    verdict = judged(mails=Counter(mail=2))
    assert (verdict.ok, verdict.repeats) == (True, 1)


@pytest.mark.parametrize(
    ("books", "mails", "finding"),
    [
        (replace(BOOKS, notifications=(BY_MAIL,)), {"mail": 1}, "a notification is missing"),
        (replace(BOOKS, notifications=(BY_MAIL, BY_MAIL, IN_APP)), {"mail": 1}, "a notification is there too often"),
        (
            replace(BOOKS, delivered=frozenset({"app"}), statuses={"mail": "FAILED", "app": "PUBLISHED"}),
            {},
            "a delivery is dead",
        ),
        (
            replace(BOOKS, delivered=frozenset({"app"}), statuses={"app": "PUBLISHED"}),
            {},
            "a delivery is neither done nor waiting",
        ),
        (BOOKS, {}, "a delivery is in the log and never arrived"),
        (BOOKS, {"mail": 1, "spam": 1}, "a delivery arrived that nobody asked for"),
    ],
)
def test_each_fault_is_found(books: Books, mails: dict[str, int], finding: str) -> None:
    [failure] = judged(books, mails=Counter(mails)).failures
    assert failure.startswith(finding)
