"""The API behaves as its OpenAPI document says, whatever a request contains."""

import shutil
from pathlib import Path

from tests.apps.ingestion.running import Service
from tests.openapi import examine


def test_every_operation_conforms_to_the_document(migrated_file: Path, tmp_path: Path) -> None:
    store = f"sqlite:///{shutil.copy(migrated_file, tmp_path)}"
    with Service(folder=tmp_path, INGESTION_STORE=store) as running:
        running.upload()
        report = examine(f"{running.client.base_url}/openapi.json", tmp_path)
        described = running.client.get("/openapi.json").json()
    assert report["operations"]["tested"] == sum(len(operations) for operations in described["paths"].values())
