"""The API behaves as its OpenAPI document says, whatever a request contains."""

from pathlib import Path

from apps.notifications.domain import Channel
from tests.apps.notifications.api.conftest import Service
from tests.apps.notifications.delivery.delivery_database import Deliveries
from tests.openapi import examine

LIVE = "/users/{user_id}/notifications/live"
"""Its responses do not end."""


def test_every_operation_conforms_to_the_document(service: Service, deliveries: Deliveries, tmp_path: Path) -> None:
    deliveries.request(1, Channel.EMAIL, Channel.IN_APP)
    report = examine(f"{service.url}/openapi.json", tmp_path, "--header", "X-User-Id: 1", "--exclude-path", LIVE)
    with service.client() as client:
        described = client.get("/openapi.json").json()
    assert LIVE in described["paths"]
    assert report["operations"]["tested"] == sum(map(len, described["paths"].values())) - 1
