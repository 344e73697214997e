"""The steps of the demo: upload, poll until every document is enriched, verify."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import httpx

from apps.ingestion.demo.processes import Processes, ProcessFailed

PATH = "/api/v1/documents"
STATUSES = ("UPLOADED", "VALIDATED", "ENRICHED")
POLL_EVERY = 0.1
STALL_TIMEOUT = 30.0
"""Seconds without progress after which the demo stops waiting."""
NAMES = ("invoice", "contract", "manual", "report", "drawing", "minutes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A document as the API shows it."""

    id: str
    name: str
    status: str
    seconds: float
    """From its upload to its last step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """Compares the uploads that were accepted with the documents that the API lists."""

    uploaded: int
    statuses: dict[str, int]
    lost: int
    """Accepted with 201, but not listed."""
    phantom: int
    """Listed, but never accepted."""
    refused: int
    """Uploads with another status than 201."""
    seconds: float

    @property
    def ok(self) -> bool:
        enriched = self.statuses["ENRICHED"]
        return 0 < self.uploaded == enriched and not (self.lost or self.phantom or self.refused)


Show = Callable[[list[Seen], int], None]
"""Called with the documents, newest first, and the number of uploads."""


class Scenario:
    """One demo. `stop` ends the uploads; documents already uploaded are still verified."""

    def __init__(self, processes: Processes, show: Show, *, seconds: float, rate: float) -> None:
        self._processes, self._show = processes, show
        self._seconds, self._rate = seconds, rate
        self._stopping = threading.Event()
        self._uploaded: set[str] = set()
        self._refused = 0
        self._client = httpx.Client(base_url=f"http://127.0.0.1:{processes.port}", timeout=10)

    def stop(self) -> None:
        self._stopping.set()

    def run(self) -> Verification:
        """Run all steps. Raises ProcessFailed if a process exits or does not respond."""
        began = time.monotonic()
        with self._client:
            try:
                self._wait_for_service()
                self._upload()
                seen = self._drain()
            except httpx.HTTPError as error:
                self._processes.check()
                raise ProcessFailed(f"the service does not respond: {error}") from error
        statuses = Counter(document.status for document in seen)
        found = {document.id for document in seen}
        return Verification(
            uploaded=len(self._uploaded),
            statuses={status: statuses[status] for status in STATUSES},
            lost=len(self._uploaded - found),
            phantom=len(found - self._uploaded),
            refused=self._refused,
            seconds=round(time.monotonic() - began, 1),
        )

    def _wait_for_service(self) -> None:
        end = time.monotonic() + STALL_TIMEOUT
        while True:
            self._processes.check()
            try:
                self._client.get("/health/live")
                return
            except httpx.HTTPError:
                if time.monotonic() > end:
                    raise
            time.sleep(POLL_EVERY)

    def _upload(self) -> None:
        began = time.monotonic()
        number = 0
        while not self._stopping.is_set() and time.monotonic() - began < self._seconds:
            while number < (time.monotonic() - began) * self._rate or number == 0:
                number += 1
                self._post(number)
            self._poll()
            self._stopping.wait(POLL_EVERY)

    def _post(self, number: int) -> None:
        body = {
            "name": f"{NAMES[number % len(NAMES)]}-{number:04}.pdf",
            "contentType": "application/pdf",
            "fileSize": 1000 * number,
            "metadata": {"category": "demo"},
            "uploadedBy": "demo",
        }
        answer = self._client.post(PATH, json=body, headers={"Idempotency-Key": f"demo-{number}"})
        if answer.status_code == 201:
            self._uploaded.add(answer.json()["id"])
        else:
            self._refused += 1

    def _drain(self) -> list[Seen]:
        enriched, since = -1, time.monotonic()
        while True:
            seen = self._poll()
            now = sum(document.status == "ENRICHED" for document in seen)
            if now == len(seen) or time.monotonic() - since > STALL_TIMEOUT:
                return seen
            if now > enriched:
                enriched, since = now, time.monotonic()
            time.sleep(POLL_EVERY)

    def _poll(self) -> list[Seen]:
        """List all documents, page by page."""
        self._processes.check()
        seen: list[Seen] = []
        after: dict[str, Any] = {}
        while True:
            page = self._client.get(PATH, params={"limit": 200} | after).raise_for_status().json()
            seen += [_seen(document) for document in page["items"]]
            if page["next"] is None:
                break
            after = {"after": page["next"]}
        self._show(seen, len(self._uploaded))
        return seen


def _seen(document: dict[str, Any]) -> Seen:
    created, updated = (datetime.fromisoformat(document[name]) for name in ("createdAt", "updatedAt"))
    return Seen(
        id=document["id"],
        name=document["name"],
        status=document["status"],
        seconds=(updated - created).total_seconds(),
    )
