"""The store itself, and who did what to it."""

from __future__ import annotations

import csv
import io
from collections.abc import AsyncIterator, Mapping

from starlette.responses import Response, StreamingResponse

from pillarbox.core.audit import AuditEntry, AuditFilter
from pillarbox.ops.console import words
from pillarbox.ops.console.filters import MOST, PER_PAGE, given, moment, whole
from pillarbox.ops.console.visiting import Visit
from pillarbox.ops.inbox import look

AUDIT_FIELDS = ("who", "what", "since")


async def store(visit: Visit) -> Response:
    """The tables and their sizes, and on demand all that the doctor finds."""
    status = await visit.desk.store.schema.status()
    taken = await visit.desk.store.diagnosis.footprint()
    doctor = visit.desk.examination
    report = await doctor.report() if doctor is not None and "doctor" in visit.query else None
    return visit.render("store.html", status=status, taken=taken, report=report, has_doctor=doctor is not None)


async def inbox(visit: Visit) -> Response:
    """Who has receipts, how many of them are old enough to go, and what consumers met lately."""
    return visit.render("inbox.html", seen=await look(visit.desk.store, retention=visit.desk.retention))


async def audit(visit: Visit) -> Response:
    page = await visit.desk.store.people.audit(audit_filter(visit.query), limit=PER_PAGE, before=before_of(visit.query))
    return visit.render("audit.html", page=page, asked=given(visit.query, AUDIT_FIELDS))


async def export_audit(visit: Visit) -> Response:
    """Everything that fits, as a table for a spreadsheet."""
    wanted, people = audit_filter(visit.query), visit.desk.store.people

    async def lines() -> AsyncIterator[str]:
        yield _line(["number", "at", "who", "what", "subject", "count", "detail"])
        before: int | None = None
        while True:
            page = await people.audit(wanted, limit=MOST, before=before)
            for entry in page.entries:
                yield _line(_row(entry))
            if (before := page.before) is None:
                return

    headers = {"content-disposition": 'attachment; filename="audit.csv"'}
    return StreamingResponse(lines(), media_type="text/csv; charset=utf-8", headers=headers)


def audit_filter(query: Mapping[str, str]) -> AuditFilter:
    """Raises ConfigurationError."""
    return AuditFilter(who=query.get("who"), what=query.get("what"), since=moment(query.get("since")))


def before_of(query: Mapping[str, str]) -> int | None:
    return whole(query["before"], "before", default=0, most=2**63 - 1) if "before" in query else None


def _row(entry: AuditEntry) -> list[str]:
    return [
        str(entry.id),
        words.iso(entry.at),
        entry.who,
        entry.what,
        entry.subject,
        str(entry.count),
        entry.detail_json,
    ]


def _line(cells: list[str]) -> str:
    written = io.StringIO()
    # A spreadsheet takes what begins like this for a formula.
    csv.writer(written).writerow([f"'{cell}" if cell[:1] in ("=", "+", "-", "@", "\t") else cell for cell in cells])
    return written.getvalue()
