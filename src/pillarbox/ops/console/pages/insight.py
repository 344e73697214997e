"""The store, the inbox and the audit."""

from __future__ import annotations

import csv
import io
from collections.abc import AsyncIterator, Mapping

from starlette.responses import Response

from pillarbox.admin.audit import AuditEntry, AuditFilter, AuditPage
from pillarbox.core.statistics import COUNTED
from pillarbox.ops.console import words
from pillarbox.ops.console.fields import is_yes
from pillarbox.ops.console.files import file_of
from pillarbox.ops.console.filters import MOST, PER_PAGE, found_or, given, moment, whole
from pillarbox.ops.console.visiting import Visit
from pillarbox.ops.inbox import read_inbox

AUDIT_FIELDS = ("who", "what", "since")


async def store(visit: Visit) -> Response:
    """Show tables and sizes and, on demand, the findings of the doctor."""
    status = await visit.desk.store.schema.status()
    taken = await visit.desk.store.diagnosis.table_sizes()
    doctor = visit.desk.examination
    examined = await doctor.last() if doctor is not None and is_yes(visit.query, "doctor") else None
    return await visit.render(
        "store.html", status=status, taken=taken, examined=examined, has_doctor=doctor is not None
    )


async def inbox(visit: Visit) -> Response:
    """Show per-consumer inbox statistics."""
    return await visit.render("inbox.html", seen=await read_inbox(visit.desk.store, retention=visit.desk.retention))


async def audit(visit: Visit) -> Response:
    page, wrong = await found_or(AuditPage([], None), audit_page(visit))
    running = any("replay" in entry.detail and not entry.detail["done"] for entry in page.entries)
    asked = given(visit.query, AUDIT_FIELDS)
    return await visit.render("audit.html", page=page, asked=asked, running=running, counted=COUNTED, wrong=wrong)


async def audit_page(visit: Visit) -> AuditPage:
    """Raises ConfigurationError."""
    wanted, before = audit_filter(visit.query), before_of(visit.query)
    return await visit.desk.store.admin.audit.list(wanted, limit=PER_PAGE, before=before)


async def export_audit(visit: Visit) -> Response:
    """Export matching entries as CSV."""
    wanted, audit = audit_filter(visit.query), visit.desk.store.admin.audit

    async def lines() -> AsyncIterator[str]:
        page = await audit.list(wanted, limit=MOST)
        yield _line(["number", "at", "who", "what", "subject", "count", "detail"])
        while True:
            for entry in page.entries:
                yield _line(_row(entry))
            if page.before is None:
                return
            page = await audit.list(wanted, limit=MOST, before=page.before)

    return await file_of(lines(), "audit.csv", media_type="text/csv; charset=utf-8")


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
    # A spreadsheet would evaluate a cell that starts like this as a formula.
    csv.writer(written).writerow([f"'{cell}" if cell[:1] in ("=", "+", "-", "@", "\t") else cell for cell in cells])
    return written.getvalue()
