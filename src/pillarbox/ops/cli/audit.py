"""`pillarbox audit`: who did what, when, to what and to how many."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import click

from pillarbox.admin.audit import AuditFilter, AuditPage
from pillarbox.core.text import safe_json
from pillarbox.ops import exports
from pillarbox.ops.cli.output import as_json, print_json, print_table
from pillarbox.ops.cli.parameters import NUMBER, limit_option, since_option

if TYPE_CHECKING:
    from pillarbox.admin.admin import AdminStore


@click.group()
def audit() -> None:
    """Show what operators did.

    \b
    Examples:
      pillarbox audit list --since 1d
      pillarbox audit list --who ada --what discard --json
    """


@audit.command("list")
@click.option("--who", metavar="NAME", help="Only actions of this operator.")
@click.option("--what", metavar="WORD", help="Only this action, such as retry, discard, edit, replay or override.")
@since_option
@limit_option
@click.option("--after", type=NUMBER, metavar="NUMBER", help="Continue after this entry.")
@as_json
def list_(
    who: str | None, what: str | None, since: datetime | None, limit: int, after: int | None, as_json: bool
) -> None:
    """List the actions of operators, the newest first.

    \b
    Example:
      pillarbox audit list --what replay
    """
    from pillarbox.ops.cli.store_access import with_shared_store

    wanted = AuditFilter(who=who, what=what, since=since)
    page = with_shared_store(lambda store: _page(store, wanted, limit=limit, before=after))
    if as_json:
        print_json({"audit": [exports.audit_entry(entry) for entry in page.entries], "after": page.before})
        return
    if not page.entries:
        click.echo("no matching entries", err=True)
        return
    print_table(
        ["number", "at", "who", "what", "subject", "count", "detail"],
        [[x.id, x.at, x.who, x.what, x.subject, x.count, safe_json(dict(x.detail))] for x in page.entries],
    )
    if page.before is not None:
        click.echo(f"for the next page: --after {page.before}", err=True)


async def _page(store: AdminStore, wanted: AuditFilter, *, limit: int, before: int | None) -> AuditPage:
    """Read pages until there are `limit` rows: a filtered page may have fewer."""
    page = await store.admin.audit.list(wanted, limit=limit, before=before)
    while page.before is not None and len(page.entries) < limit:
        more = await store.admin.audit.list(wanted, limit=limit - len(page.entries), before=page.before)
        page = AuditPage(page.entries + more.entries, more.before)
    return page
