"""`pillarbox prune` and what people did: kept for a time of its own, and what is still to be done stays."""

import json

from tests.integration.cli.conftest import Stock
from tests.integration.cli.running import pillarbox


def test_what_people_did_goes_by_its_own_age(with_letters: Stock) -> None:
    assert pillarbox("dead", "retry", "dead1", PILLARBOX_STORE=with_letters.url).returncode == 0
    kept = json.loads(pillarbox("prune", "--json", "--yes", PILLARBOX_STORE=with_letters.url).stdout)
    assert (kept["audit"], kept["dropped"]) == (0, False)
    done = pillarbox("prune", "--audit", "0s", "--yes", PILLARBOX_STORE=with_letters.url)
    assert (done.returncode, done.stdout) == (0, "dropped 1 entries of the audit\n")
    again = json.loads(pillarbox("prune", "--audit", "0s", "--json", PILLARBOX_STORE=with_letters.url).stdout)
    assert again["audit"] == 0


def test_what_was_asked_for_and_is_not_done_stays(with_letters: Stock) -> None:
    # It was given up and holds its key: only the relay that owns its lane may let it go.
    assert pillarbox("dead", "retry", "stuck", PILLARBOX_STORE=with_letters.url).returncode == 0
    pillarbox("prune", "--audit", "0s", "--yes", PILLARBOX_STORE=with_letters.url)
    relay = pillarbox("relay", "--until-empty", PILLARBOX_STORE=with_letters.url, PILLARBOX_TRANSPORT="console")
    assert relay.returncode == 0, relay.stderr
    # No longer FAILED: the relay was told. It waits for a destination that this relay does not know.
    assert with_letters.states("stuck") == ["PENDING"]
