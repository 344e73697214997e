"""The release of BASELINE and this one share a database: during a rollout, and after a rollback."""

import json

import pytest

from tests.integration.migrations.database import status
from tests.integration.migrations.release import BOUND, Release, fill
from tests.servers.waiting import wait_until


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_the_old_relay_works_on_while_the_tables_are_migrated(old: Release, new: Release) -> None:
    """On a file one relay works at a time; for several relays on a server see test_rolling.py."""
    fill(old)
    with old.relay("old") as running:
        new.run("schema", "apply")
        new.run("record", "order.placed", '{"id": 4}', "--id", "after the migration")
        wait_until(
            lambda: new.events("published") == {"delivered", "pending", "after the migration"},
            bound=BOUND,
            what="events delivered by the old relay",
            pause=0.2,
        )
        assert running.poll() is None
    assert status(new.url).ok


def test_the_old_release_starts_on_tables_that_are_ahead_by_an_additive_change(old: Release, new: Release) -> None:
    """A rollback: the tables stay as they are, and the old release works with them."""
    fill(old)
    new.run("schema", "apply")
    assert json.loads(old.run("schema", "status", "--json"))["required"] == 1
    old.run("schema", "check")
    assert old.run("schema", "apply") == "the tables are up to date\n"
    old.run("record", "order.placed", '{"id": 4}', "--id", "after the rollback")
    with old.relay("old"):
        wait_until(
            lambda: new.events("published") == {"delivered", "pending", "after the rollback"},
            bound=BOUND,
            what="events delivered after the rollback",
            pause=0.2,
        )
    assert status(new.url).ok


def test_the_new_relay_names_the_command_on_tables_of_the_old_release(old: Release, new: Release) -> None:
    fill(old)
    refused = new.attempt("relay", "--until-empty")
    assert refused.returncode == 1
    assert "pillarbox schema apply" in refused.stderr
    # Producers need the table of messages only.
    new.run("record", "order.placed", '{"id": 4}', "--id", "before the migration")
    assert old.events("pending") == {"pending", "before the migration"}
