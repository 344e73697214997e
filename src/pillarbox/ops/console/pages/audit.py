"""The audit log: a page and an export."""

from __future__ import annotations

import csv
import io
from collections.abc import AsyncIterator, Mapping

from starlette.responses import Response

from pillarbox.admin.audit import AuditEntry, AuditFilter, AuditPage
from pillarbox.core.statistics import COUNTED
from pillarbox.ops.console import formatting
from pillarbox.ops.console.downloads import stream_file
from pillarbox.ops.console.filters import MAX_PER_PAGE, PER_PAGE, found_or, given, moment, whole
from pillarbox.ops.console.request import ConsoleRequest

AUDIT_FIELDS = ("who", "what", "since")


async def audit(request: ConsoleRequest) -> Response:
    page, wrong = await found_or(AuditPage([], None), audit_page(request))
    running = any("replay" in entry.detail and not entry.detail["done"] for entry in page.entries)
    asked = given(request.query, AUDIT_FIELDS)
    return await request.render("audit.html", page=page, asked=asked, running=running, counted=COUNTED, wrong=wrong)


async def audit_page(request: ConsoleRequest) -> AuditPage:
    """Raises ConfigurationError."""
    wanted, before = audit_filter(request.query), before_of(request.query)
    return await request.store.admin.audit.list(wanted, limit=PER_PAGE, before=before)


async def export_audit(request: ConsoleRequest) -> Response:
    """Export matching entries as CSV."""
    wanted, audit = audit_filter(request.query), request.store.admin.audit

    async def lines() -> AsyncIterator[str]:
        page = await audit.list(wanted, limit=MAX_PER_PAGE)
        yield _line(["number", "at", "who", "what", "subject", "count", "detail"])
        while True:
            for entry in page.entries:
                yield _line(_row(entry))
            if page.before is None:
                return
            page = await audit.list(wanted, limit=MAX_PER_PAGE, before=page.before)

    return await stream_file(lines(), "audit.csv", media_type="text/csv; charset=utf-8")


def audit_filter(query: Mapping[str, str]) -> AuditFilter:
    """Raises ConfigurationError."""
    return AuditFilter(who=query.get("who"), what=query.get("what"), since=moment(query.get("since")))


def before_of(query: Mapping[str, str]) -> int | None:
    return whole(query["after"], "after", default=0, most=2**63 - 1) if "after" in query else None


def _row(entry: AuditEntry) -> list[str]:
    return [
        str(entry.id),
        formatting.iso(entry.at),
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
