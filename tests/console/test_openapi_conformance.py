"""The API behaves as its OpenAPI document says, whatever a request contains."""

from pathlib import Path
from typing import Any

import httpx

from pillarbox.ops.console import Role
from pillarbox.ops.console.users import write
from tests.console.accounts import PASSWORD, entry
from tests.console.scene import fill
from tests.console.serving import serving
from tests.integration.cli.conftest import Stock
from tests.openapi import examine

DOCUMENT = "/api/v1/openapi.json"
CREDENTIALS: tuple[dict[str, str], ...] = (
    {},
    {"authorization": "Basic"},
    {"authorization": "Bearer ada"},
    {"cookie": "pillarbox_session=ada"},
)


def test_every_operation_conforms_to_the_document(sqlite_url: str, tmp_path: Path) -> None:
    fill(Stock(sqlite_url))
    write(tmp_path / "users", {"ada": entry("ada", Role.ADMIN, payloads=True)})
    with serving(
        sqlite_url,
        tmp_path,
        PILLARBOX_CONSOLE__USERS_FILE=str(tmp_path / "users"),
        PILLARBOX_TRANSPORT="stdout://",
    ) as base:
        described: dict[str, Any] = httpx.get(base + DOCUMENT, auth=("ada", PASSWORD), timeout=90).json()
        report = examine(base + DOCUMENT, tmp_path, "--auth", f"ada:{PASSWORD}")
        assert report["operations"]["tested"] == len(described["paths"])
        assert_refused(base, described)


def assert_refused(base: str, described: dict[str, Any]) -> None:
    """Every operation needs a login."""
    with httpx.Client(base_url=base, timeout=90) as client:
        assert client.get(DOCUMENT).status_code == 401
        for path, operations in described["paths"].items():
            for headers in CREDENTIALS:
                [method] = operations
                answer = client.request(method, path, headers=headers, json={} if method == "post" else None)
                assert (answer.status_code, answer.json()) == (401, {"error": "You are not logged in."}), path
