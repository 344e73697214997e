"""`pillarbox prune` and the audit: it has its own retention, and open requests are kept."""

import getpass
import json

from tests.integration.cli.conftest import Stock
from tests.integration.cli.running import pillarbox


def test_the_audit_has_its_own_retention(with_dead_letters: Stock) -> None:
    assert pillarbox("dead", "retry", "dead1", PILLARBOX_STORE=with_dead_letters.url).returncode == 0
    kept = json.loads(pillarbox("prune", "--json", "--yes", PILLARBOX_STORE=with_dead_letters.url).stdout)
    assert (kept["audit"], kept["deleted"]) == (0, False)
    done = pillarbox("prune", "--audit", "0s", "--yes", PILLARBOX_STORE=with_dead_letters.url)
    assert (done.returncode, done.stdout) == (0, "deleted 1 audit entry\n")
    # The prune itself is audited.
    [entry] = with_dead_letters.ask("SELECT who, what, subject, count FROM outbox_audit")
    assert entry == (getpass.getuser(), "prune", "audit", 1)


def test_a_manual_prune_is_audited(with_dead_letters: Stock) -> None:
    done = pillarbox("prune", "--history", "0s", "--dead", "0s", "--yes", PILLARBOX_STORE=with_dead_letters.url)
    assert done.returncode == 0, done.stderr
    [entry] = json.loads(pillarbox("audit", "list", "--json", PILLARBOX_STORE=with_dead_letters.url).stdout)["audit"]
    assert (entry["who"], entry["what"], entry["subject"], entry["count"]) == (
        getpass.getuser(),
        "prune",
        "history, dead",
        3,
    )
    assert entry["detail"] == {
        "deleted": {"history": 1, "dead": 2},
        "older_than_seconds": {"history": 0, "dead": 0},
    }


def test_open_requests_are_kept(with_dead_letters: Stock) -> None:
    # It blocks its key: only the relay that owns its lane may release it.
    assert pillarbox("dead", "retry", "stuck", PILLARBOX_STORE=with_dead_letters.url).returncode == 0
    pillarbox("prune", "--audit", "0s", "--yes", PILLARBOX_STORE=with_dead_letters.url)
    relay = pillarbox("relay", "--until-empty", PILLARBOX_STORE=with_dead_letters.url, PILLARBOX_TRANSPORT="stdout://")
    assert relay.returncode == 0, relay.stderr
    # No longer FAILED: the relay has applied the request. Its destination is unknown to this relay.
    assert with_dead_letters.states("stuck") == ["PENDING"]
