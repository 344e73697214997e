"""What `--json` prints is documented, key by key."""

from datetime import UTC, datetime

import pytest

from pillarbox.admin.audit import AuditEntry
from pillarbox.admin.broker_dead_letters import BrokerDeadLetter
from pillarbox.admin.dead_letters import ListedDeadLetter
from pillarbox.admin.listing import EventDetail, Failure, ListedEvent
from pillarbox.admin.states import EventState
from pillarbox.ops import exports
from pillarbox.ops.dead_letter_groups import DeadLetterGroup
from tests.docs.pages import ROOT

PAGE = (ROOT / "docs/reference/cli.md").read_text(encoding="utf-8")
NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
LISTED = ListedEvent(NOON, 1, "", "e", EventState.READY, "t", None, 0, 0, None, None, None, None)
DEAD_LETTER = ListedDeadLetter(1, "e", "", "t", None, "no", 1, NOON, NOON, NOON)
DETAIL = EventDetail(
    1, "e", "", EventState.READY, "t", None, None, None, b'{"n": 1}', "application/json", "{}", 1, None, None, None,
    NOON, NOON, None, None, 0, 0, None, None, None, None, None, None, None, None,
)  # fmt: skip
ON_THE_BROKER = BrokerDeadLetter(
    queue="q", event_id="e", event_type="t", reason=None, attempts=0, dead_lettered_at=NOON, original_queue=None,
    delivery_count=0, content_type=None, size=0, body=b"",
)  # fmt: skip
GROUP = DeadLetterGroup(
    fingerprint="f",
    reason="r",
    event_type="t",
    destination="",
    count=1,
    first_at=NOON,
    last_at=NOON,
    example=DEAD_LETTER,
)
ENTRY = AuditEntry(1, NOON, "ada", "retry", "e", 1, "{}")
FAILURE = Failure("orders", 1, True, "no", NOON, 0.25)


@pytest.mark.parametrize(
    ("heading", "printed"),
    [
        ("## `pillarbox events`", exports.listed_event(LISTED)),
        ("## `pillarbox events`", exports.event_detail(DETAIL)),
        ("## `pillarbox events`", exports.failure(FAILURE)),
        ("## `pillarbox dead`", exports.listed_dead_letter(DEAD_LETTER)),
        ("## `pillarbox dead`", exports.dead_letter_group(GROUP)),
        ("## `pillarbox dead`", exports.content(DETAIL)),
        ("## `pillarbox audit`", exports.audit_entry(ENTRY)),
        ("## `pillarbox dead broker`", exports.broker_dead_letter(ON_THE_BROKER)),
    ],
)
def test_every_key_is_documented(heading: str, printed: dict[str, object]) -> None:
    section = PAGE[PAGE.index(heading) :].split("\n## ")[0]
    assert sorted(key for key in printed if f"`{key}`" not in section) == []
