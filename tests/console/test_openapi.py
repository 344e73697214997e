"""The OpenAPI document types every response: a client that is generated from it reads whatever the console sends."""

from pathlib import Path
from typing import Any

import httpx
import pytest

from pillarbox.ops.console import Role
from pillarbox.ops.console.users import write
from tests.console.accounts import PASSWORD, entry
from tests.console.generated_client import generate
from tests.console.scene import ORDERS, fill
from tests.console.serving import serving
from tests.integration.cli.conftest import Stock

ADA = ("ada", PASSWORD)
BLOCKED = "0193c2f0-6b1e-7c3a-9f57-000000000005"
"""The event that blocks its key in the scene."""


@pytest.fixture(params=["sqlite_url", "postgres_url"])
def stock(request: pytest.FixtureRequest) -> Stock:
    found = Stock(request.getfixturevalue(request.param))
    fill(found)
    return found


def document(base: str) -> dict[str, Any]:
    found: dict[str, Any] = httpx.get(f"{base}/api/v1/openapi.json", auth=ADA, timeout=60).json()
    return found


def test_a_generated_client_reads_every_response_and_acts(stock: Stock, tmp_path: Path) -> None:
    write(tmp_path / "users", {"ada": entry("ada", Role.ADMIN, payloads=True)})
    with serving(stock.url, tmp_path, PILLARBOX_CONSOLE__USERS_FILE=str(tmp_path / "users")) as base:
        described = document(base)
        module = generate(described)
        client = module.Client(base, ADA)
        called: set[str] = set()

        def call(operation: str, **given: Any) -> Any:
            called.add(operation)
            return getattr(client, operation)(**given)

        for query in ("statistics", "status", "timeseries", "dead_groups", "destinations", "keys", "keys_groups"):
            call(query)
        for query in ("relays", "inbox", "store", "audit", "doctor", "events_states"):
            call(query)
        events = call("events", limit="100").events
        assert {event.state for event in events} >= {"published", "retrying", "blocked", "dead_lettered"}
        for event in events[::8]:
            assert call("event", id=event.event_id).events[0].event_id == event.event_id
        [page] = [call("destination", name="mailer")]
        assert (page.state, page.breaker) == ("unavailable", "open")
        newest = call("dead").dead_letters[0]
        assert call("dead_retry", ids=[newest.event_id], dry_run=True).matched == 1
        assert call("dead_discard", ids=[newest.event_id], dry_run=True).done == 0
        assert call("dead_edit", dead_letter_id=newest.dead_letter_id, headers={"n": "1"}, dry_run=True).changed
        assert call("keys_act", id=BLOCKED, destination="billing", action="retry").message
        assert call("keys_decide", action="skip", all=True, dry_run=True).matched == 1
        assert call("event_act", id=BLOCKED, destination="billing", action="retry").message
        assert call("events_act", action="retry", state="retrying", dry_run=True).matched > 0
        assert call("events_erase", aggregate=f"ORDER:{ORDERS + 1}", dry_run=True).pending > 0
        assert call("everything", action="pause").message
        assert call("everything", action="resume").message
        assert call("destinations_override", destination="orders", action="pause").message
        relay = next(one.id for one in call("relays").relays if one.lease_seconds > 0)
        assert call("relays_drain", relay=relay).message
        assert call("replay", destination="orders", limit=1).replay > 0
        client.close()
        operations = {one["operationId"] for each in described["paths"].values() for one in each.values()}
        assert operations == called


def test_every_response_and_every_body_is_typed(stock: Stock, tmp_path: Path) -> None:
    write(tmp_path / "users", {"ada": entry("ada", Role.ADMIN)})
    with serving(stock.url, tmp_path, PILLARBOX_CONSOLE__USERS_FILE=str(tmp_path / "users")) as base:
        found = document(base)
    for path, operations in found["paths"].items():
        for method, operation in operations.items():
            schema = operation["responses"]["200"]["content"]["application/json"]["schema"]
            assert schema["$ref"].rpartition("/")[2] in found["components"]["schemas"], path
            if method == "post":
                body = operation["requestBody"]["content"]["application/json"]["schema"]
                untyped = [name for name, one in body["properties"].items() if "type" not in one]
                assert untyped in ([], ["payload"]), path
