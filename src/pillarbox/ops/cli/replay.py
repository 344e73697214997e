"""`pillarbox replay`: send delivered events again, as new events. An interrupted replay can be resumed."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from pillarbox.core.errors import ConfigurationError, PillarboxError
from pillarbox.core.statistics import COUNTED
from pillarbox.core.text import plural
from pillarbox.ops.cli.exits import NotFoundError, confirm, dry_run_option, yes_option
from pillarbox.ops.cli.output import as_json, print_json, progress
from pillarbox.ops.cli.parameters import NUMBER, since_option, until_option
from pillarbox.ops.cli.parameters import rate as per_second

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from pillarbox.admin.admin import AdminStore
    from pillarbox.admin.replay import Progress, Replay
    from pillarbox.ops.replay_runs import OnProgress

    ReplayWork = Callable[[AdminStore, OnProgress], Awaitable[Progress]]


@click.command()
@click.argument("event_ids", nargs=-1)
@click.option("--type", "event_type", metavar="TYPE", help="Only this event type.")
@click.option("--key", help="Only this key, such as ORDER:42.")
@click.option("--destination", metavar="NAME", help="Only events delivered to this destination.")
@since_option
@until_option
@click.option("--all", "every", is_flag=True, help="All events of the history.")
@click.option("--limit", "most", type=click.IntRange(1), metavar="N", help="The oldest N.")
@click.option("--to", metavar="NAME", help="Send all to this destination; default: the original ones.")
@click.option(
    "--rate", type=per_second, metavar="RATE", help="Copy at most at this rate, such as 100/s; default: unlimited."
)
@click.option("--resume", type=NUMBER, metavar="NUMBER", help="Resume an interrupted replay.")
@dry_run_option
@yes_option
@as_json
def replay(
    event_ids: tuple[str, ...],
    event_type: str | None,
    key: str | None,
    destination: str | None,
    since: datetime | None,
    until: datetime | None,
    every: bool,
    most: int | None,
    to: str | None,
    rate: float | None,
    resume: int | None,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Send delivered events again, as new events.

    Events in the history can be replayed. Each copy is a NEW event: it has its own id, so that consumers and their
    inboxes accept it, and the header `replayof` with the id of the original. Copies go to the end of their keys, in the
    order in which the originals were delivered. Copies of earlier replays are skipped, unless they are named by id.

    --since and --until are the time of recording. --resume continues an interrupted or killed replay without repeating
    a copy.

    \b
    Examples:
      pillarbox replay --type order.placed --since 2d --dry-run
      pillarbox replay --destination orders --since 2d --to audit --rate 100/s
      pillarbox replay evt-001 evt-002
      pillarbox replay --resume 17
    """
    from pillarbox.admin.listing import EventFilter
    from pillarbox.admin.replay import Replay
    from pillarbox.ops import replay_runs
    from pillarbox.ops.cli.store_access import operator, with_shared_store

    wanted = EventFilter(event_type=event_type, key=key, destination=destination, since=since)
    asked = bool(event_ids or wanted.asked or since or until)
    if resume is not None:
        if asked or every or most or to or dry_run:
            raise click.UsageError("--resume uses the original selection: it can be combined only with --rate.")
        _resume(resume, rate=rate, as_json=as_json)
        return
    if not (asked or every):
        raise click.UsageError("Give event ids, a filter, or --all.")
    if every and asked:
        raise click.UsageError("--all cannot be combined with event ids, a filter or a group.")
    plan = Replay(wanted=wanted, until=until, event_ids=event_ids, to=_known(to), rate=rate, most=most)
    with progress("counting", size=None) as advance:

        def on_query(rows: int) -> None:
            advance(amount=rows, events=rows)

        matched = with_shared_store(lambda store: replay_runs.count(store, plan, on_query=on_query)).found
    if event_ids and not matched:
        raise NotFoundError(f"{', '.join(map(repr, event_ids))}: not in the history; see `pillarbox events show`")
    if not matched or dry_run:
        _print(plan, matched, None, as_json=as_json, dry_run=dry_run)
        return
    if not event_ids:
        confirm(f"Replay {_describe(plan, matched)}?", yes=yes)
    done = _watched(
        lambda store, on_progress: replay_runs.run(store, plan, by=operator(), expected=matched, progress=on_progress),
        size=matched,
    )
    _print(plan, matched, done, as_json=as_json, dry_run=False)


def _resume(number: int, *, rate: float | None, as_json: bool) -> None:
    from pillarbox.ops import replay_runs
    from pillarbox.ops.cli.store_access import with_shared_store

    found = with_shared_store(lambda store: store.admin.replays.find(number))
    if found is None:
        raise NotFoundError(f"there is no replay {number}: see `pillarbox audit list --what replay`")
    if rate is not None:
        found = found._replace(plan=replace(found.plan, rate=rate))
    left = found
    done = _watched(lambda store, on_progress: replay_runs.resume(store, left, progress=on_progress), size=None)
    _print(found.plan, None, done, as_json=as_json, dry_run=False)


def _watched(work: ReplayWork, *, size: int | None) -> Progress:
    """Run a replay with a progress bar; if it is interrupted, print how to resume it."""
    from pillarbox.ops.cli.store_access import with_shared_store

    last: list[Progress] = []
    with progress("replaying", size=None if size is None or size > COUNTED else size) as advance:

        def on_progress(now: Progress) -> None:
            fresh = now.copied - last[-1].copied if last else 0
            last[:] = [now]
            advance(amount=fresh, events=fresh)

        try:
            return with_shared_store(lambda store: work(store, on_progress))
        except (KeyboardInterrupt, PillarboxError) as error:
            ended: BaseException = error
    for left in last:
        click.echo(f"{left.copied:,} copied; resume with `pillarbox replay --resume {left.number}`", err=True)
    raise ended


def _known(to: str | None) -> str | None:
    """Check that the settings have this destination, if they have any."""
    from pillarbox.ops.cli.context import current_settings

    names = current_settings().destinations
    if to is not None and names and to not in names:
        raise ConfigurationError(f"--to: the settings have no destination {to!r}; they have {', '.join(names)}")
    return to


def _print(plan: Replay, matched: int | None, done: Progress | None, *, as_json: bool, dry_run: bool) -> None:
    if as_json:
        counts: dict[str, Any] = {"matched": matched, "exact": matched is not None and matched <= COUNTED}
        counts |= {"copied": done.copied if done else 0, "replay": done.number if done else None}
        print_json(counts | {"dry_run": dry_run})
    elif done is not None:
        click.echo(f"replayed {_deliveries(done.copied)}: replay {done.number}")
    elif matched:
        click.echo(f"would replay {_describe(plan, matched)}")
    else:
        click.echo("no matching events in the history")


def _describe(plan: Replay, matched: int) -> str:
    where = "each to its destination" if plan.to is None else f"to {plan.to}"
    return f"{_deliveries(matched, most=COUNTED)}, {where}"


def _deliveries(count: int, *, most: int | None = None) -> str:
    """Format the number of deliveries: an event with two destinations counts twice."""
    return plural(count, "delivery", "deliveries", limit=most)
