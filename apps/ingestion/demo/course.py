"""The course of a demo: upload for a while, watch every document to the end of its way, and judge."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import httpx

from apps.ingestion.demo.system import System, SystemFailed

PATH = "/api/v1/documents"
STATUSES = ("UPLOADED", "VALIDATED", "ENRICHED")
LOOK_EVERY = 0.1
STUCK = 30.0
"""Seconds without any progress after which nobody waits for the rest."""
NAMES = ("invoice", "contract", "letter", "report", "drawing", "minutes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A document as the API shows it."""

    id: str
    name: str
    status: str
    seconds: float
    """From its upload to its last step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What was answered with 201 against what is there and where it got to."""

    uploaded: int
    statuses: dict[str, int]
    lost: int
    """Answered with 201, and not there."""
    phantom: int
    """There, and never answered."""
    refused: int
    """Uploads that got another answer than 201."""
    seconds: float

    @property
    def ok(self) -> bool:
        enriched = self.statuses["ENRICHED"]
        return 0 < self.uploaded == enriched and not (self.lost or self.phantom or self.refused)


Show = Callable[[list[Seen], int], None]
"""Given the documents, the newest first, and how many were uploaded."""


class Course:
    """One demo. `stop` ends the uploading; what was uploaded is still watched to its end."""

    def __init__(self, system: System, show: Show, *, seconds: float, rate: float) -> None:
        self._system, self._show = system, show
        self._seconds, self._rate = seconds, rate
        self._stopping = threading.Event()
        self._uploaded: set[str] = set()
        self._refused = 0
        self._client = httpx.Client(base_url=f"http://127.0.0.1:{system.port}", timeout=10)

    def stop(self) -> None:
        self._stopping.set()

    def run(self) -> Verdict:
        """Raises SystemFailed if the system cannot go on."""
        began = time.monotonic()
        with self._client:
            try:
                self._wait_for_service()
                self._upload()
                seen = self._drain()
            except httpx.HTTPError as error:
                self._system.check()
                raise SystemFailed(f"the service does not answer: {error}") from error
        statuses = Counter(document.status for document in seen)
        found = {document.id for document in seen}
        return Verdict(
            uploaded=len(self._uploaded),
            statuses={status: statuses[status] for status in STATUSES},
            lost=len(self._uploaded - found),
            phantom=len(found - self._uploaded),
            refused=self._refused,
            seconds=round(time.monotonic() - began, 1),
        )

    def _wait_for_service(self) -> None:
        end = time.monotonic() + STUCK
        while True:
            self._system.check()
            try:
                self._client.get("/health/live")
                return
            except httpx.HTTPError:
                if time.monotonic() > end:
                    raise
            time.sleep(LOOK_EVERY)

    def _upload(self) -> None:
        began = time.monotonic()
        number = 0
        while not self._stopping.is_set() and time.monotonic() - began < self._seconds:
            while number < (time.monotonic() - began) * self._rate or number == 0:
                number += 1
                self._post(number)
            self._look()
            self._stopping.wait(LOOK_EVERY)

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
            seen = self._look()
            now = sum(document.status == "ENRICHED" for document in seen)
            if now == len(seen) or time.monotonic() - since > STUCK:
                return seen
            if now > enriched:
                enriched, since = now, time.monotonic()
            time.sleep(LOOK_EVERY)

    def _look(self) -> list[Seen]:
        """Everything there is, page by page."""
        self._system.check()
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
