"""The reference of the doctor names every check, in its place and order, and no other."""

import re
from collections.abc import Sequence

import pytest

from pillarbox.admin.admin import AdminStore
from pillarbox.admin.diagnosis import Check
from pillarbox.ops.doctor import guarantees, symptoms
from pillarbox.ops.doctor import settings as settings_checks
from pillarbox.ops.settings import Settings
from pillarbox.stores.memory import MemoryStore
from pillarbox.stores.postgres import PostgresStore
from pillarbox.stores.sqlite import SqliteStore
from pillarbox.transports.rabbitmq.diagnosis import RabbitMQDiagnosis
from tests.docs.pages import ROOT

PAGE = (ROOT / "docs/reference/doctor.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| `(\w+\.\w+)`( \*)? \| (.+) \| .+ \|$", PAGE, re.MULTILINE)
SETTINGS = Settings.load(None, {}, {"store.ledger": "true"})
STORES: list[AdminStore] = [
    MemoryStore(),
    SqliteStore("sqlite:///unused.db"),
    PostgresStore("postgresql://app@db/shop"),
]
GROUPS: list[Sequence[Check]] = [
    settings_checks.checks(SETTINGS, STORES[0]),
    *(store.diagnosis.checks() for store in STORES),
    RabbitMQDiagnosis("amqp://app@mq/").checks(),
    guarantees.checks(SETTINGS),
    symptoms.checks(SETTINGS, STORES[0]),
]
CHECKS: list[Check] = [check for group in GROUPS for check in group]


def test_the_page_has_every_check_and_no_other() -> None:
    listed = [name for name, _, _ in ROWS]
    assert len(listed) == len(set(listed))
    assert set(listed) == {check.name for check in CHECKS}


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group[0].name)
def test_checks_stand_in_the_order_in_which_they_are_made(group: Sequence[Check]) -> None:
    listed = [name for name, _, _ in ROWS]
    assert [check.name for check in group] == sorted((check.name for check in group), key=listed.index)


def test_those_on_which_others_depend_are_marked() -> None:
    marked = {name for name, mark, _ in ROWS if mark}
    assert marked == {check.name for check in CHECKS if check.gate} | {settings_checks.READ}


def test_every_row_says_what_is_a_warning_and_what_a_failure() -> None:
    assert [name for name, _, when in ROWS if "**fail**" not in when and "**warn**" not in when] == []
