"""The reference of the doctor names every check, in its place and order, and no other."""

import re
from collections.abc import Sequence

import pytest

from pillarbox.admin.admin import AdminStore
from pillarbox.admin.diagnosis import Check
from pillarbox.ops.doctor import guarantees, symptoms
from pillarbox.ops.doctor import settings as settings_checks
from pillarbox.ops.settings import Settings
from pillarbox.stores.mariadb import MariaDBStore
from pillarbox.stores.memory import MemoryStore
from pillarbox.stores.postgres import PostgresStore
from pillarbox.stores.sqlite import SqliteStore
from pillarbox.transports.kafka.diagnosis import KafkaDiagnosis
from pillarbox.transports.nats.diagnosis import NatsDiagnosis
from pillarbox.transports.rabbitmq.diagnosis import RabbitMQDiagnosis
from pillarbox.transports.redis.diagnosis import RedisDiagnosis
from pillarbox.transports.webhook.diagnosis import WebhookDiagnosis
from tests.docs.pages import ROOT

PAGE = (ROOT / "docs/reference/doctor.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| `(\w+\.\w+)`( \*)? \| (.+) \| .+ \|$", PAGE, re.MULTILINE)
SETTINGS = Settings.load(None, {}, {"store.ledger": "true"})
STORES: list[AdminStore] = [
    MemoryStore(),
    SqliteStore("sqlite:///unused.db"),
    PostgresStore("postgresql://app@db/shop"),
    MariaDBStore("mariadb://app@db/shop"),
]
GROUPS: list[Sequence[Check]] = [
    settings_checks.checks(SETTINGS, STORES[0]),
    *(store.diagnosis.checks() for store in STORES),
    guarantees.checks(SETTINGS),
    symptoms.checks(SETTINGS, STORES[0]),
]
TRANSPORTS: dict[str, Sequence[Check]] = {
    "RabbitMQ": RabbitMQDiagnosis("amqp://app@mq/").checks(),
    "NATS": NatsDiagnosis("nats://app@nats").checks(),
    "Kafka": KafkaDiagnosis("kafka://k1").checks(),
    "Redis": RedisDiagnosis("redis://app@cache/").checks(),
    "Webhooks": WebhookDiagnosis("https://receiver.example/").checks(),
}
CHECKS: list[Check] = [check for group in (*GROUPS, *TRANSPORTS.values()) for check in group]


def test_the_page_has_every_check_and_no_other() -> None:
    listed = [name for name, _, _ in ROWS]
    common = [name for name in listed if not name.startswith("transport.")]
    assert len(common) == len(set(common))
    assert set(listed) == {check.name for check in CHECKS}


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_the_section_of_a_transport_has_its_checks_in_the_order_in_which_they_run(transport: str) -> None:
    section = re.split(r"^##", PAGE.partition(f"### {transport}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]
    assert re.findall(r"^\| `(\w+\.\w+)`", section, re.MULTILINE) == [check.name for check in TRANSPORTS[transport]]


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group[0].name)
def test_checks_are_listed_in_the_order_in_which_they_run(group: Sequence[Check]) -> None:
    listed = [name for name, _, _ in ROWS]
    assert [check.name for check in group] == sorted((check.name for check in group), key=listed.index)


def test_checks_on_which_others_depend_are_marked() -> None:
    marked = {name for name, mark, _ in ROWS if mark}
    assert marked == {check.name for check in CHECKS if check.prerequisite} | {settings_checks.READ}


def test_every_row_says_what_is_a_warning_and_what_a_failure() -> None:
    assert [name for name, _, when in ROWS if "**fail**" not in when and "**warn**" not in when] == []
