"""Replay: send delivered events again as new events; counted first, then copied in the background."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from starlette.background import BackgroundTask
from starlette.responses import Response

from pillarbox.admin.admin import AdminStore
from pillarbox.admin.listing import EventFilter
from pillarbox.admin.replay import Progress, Replay
from pillarbox.core.errors import PillarboxError
from pillarbox.core.statistics import COUNTED
from pillarbox.ops import replay_runs
from pillarbox.ops.console import command_line
from pillarbox.ops.console.fields import TOKEN, check_names, texts_of
from pillarbox.ops.console.filters import found_or, given, moment, whole
from pillarbox.ops.console.request import ConsoleRequest, RequestError
from pillarbox.ops.replay_runs import Count
from pillarbox.relay.routing import per_second

FIELDS = ("id", "type", "key", "destination", "since", "until", "to", "rate", "limit")
QUERIES = 20
"""Maximum number of history queries for a count; the command line has no such limit."""
LONGEST = 1_000_000_000

_log = logging.getLogger("pillarbox.console")


async def confirm(request: ConsoleRequest) -> Response:
    """Ask for confirmation; counts only if a filter is given."""
    check_names(request.query, FIELDS)
    asked = given(request.query, FIELDS)
    count, wrong = await found_or(None, _counted(request.store, asked))
    said = {} if count is None else {"many": count_text(count), "nothing": nothing_text(count)}
    return await request.render("replay.html", asked=asked, count=count, command=_command(asked), wrong=wrong, **said)


async def _counted(store: AdminStore, asked: Mapping[str, str]) -> Count | None:
    """Raises ConfigurationError."""
    return await replay_runs.count(store, plan_of(asked), queries=QUERIES) if asked else None


async def begin(request: ConsoleRequest) -> Response:
    """Start a replay: it is audited before the response; the copies are made afterwards."""
    _, said, rest = await start_replay(request)
    event_id = str(request.form.get("id", ""))
    path, query = ("/event", {"id": event_id}) if event_id else ("/audit", {"what": "replay"})
    redirect = request.redirect(path, said, **query)
    redirect.background = rest
    return redirect


async def start_replay(request: ConsoleRequest) -> tuple[Progress, str, BackgroundTask]:
    """Return the replay, the message to show and the background task. Raises RequestError, ConfigurationError."""
    check_names(request.form, (*FIELDS, TOKEN))
    asked = texts_of(request.form, FIELDS)
    if not asked:
        raise RequestError(400, "The filter is empty: give an event, a type, a key, a destination or a time.")
    plan, store = plan_of(asked), request.store
    count = await replay_runs.count(store, plan, queries=QUERIES)
    if not count.found:
        raise RequestError(404 if count.among is None else 413, nothing_text(count))
    progress = await store.admin.replays.begin(plan, by=request.user.name, expected=count.expected)
    said = f"Replay {progress.number} of {count_text(count)} started; the audit shows its progress."
    return progress, said, BackgroundTask(_copy_all, store, progress)


def plan_of(asked: Mapping[str, str]) -> Replay:
    """Raises ConfigurationError."""
    return Replay(
        wanted=EventFilter(
            event_type=asked.get("type"),
            key=asked.get("key"),
            destination=asked.get("destination"),
            since=moment(asked.get("since")),
        ),
        until=moment(asked.get("until")),
        event_ids=(asked["id"],) if "id" in asked else (),
        to=asked.get("to"),
        rate=per_second(asked["rate"]) if "rate" in asked else None,
        most=whole(asked["limit"], "limit", default=1, most=LONGEST) if "limit" in asked else None,
    )


def count_text(count: Count) -> str:
    """Format the count; says whether it is a lower bound."""
    if count.found > COUNTED:
        return f"{COUNTED:,} or more deliveries"
    found = f"{count.found:,} {'delivery' if count.found == 1 else 'deliveries'}"
    return found if count.among is None else f"at least {found}"


def nothing_text(count: Count) -> str:
    """Say why there is nothing to replay."""
    if count.among is None:
        return "The history has no matching deliveries. Delivered events are deleted after their retention period."
    return (
        f"No match among the first {count.among:,} deliveries of this range; the rest was not searched. "
        "Narrow it by type, key or time, or use the command line."
    )


async def _copy_all(store: AdminStore, progress: Progress) -> None:
    try:
        await replay_runs.resume(store, progress)
    except PillarboxError as error:
        # The response was already sent: the log line tells an operator how to resume.
        _log.error("replay %s stopped: %s; `pillarbox replay --resume %s`", progress.number, error, progress.number)


def _command(asked: Mapping[str, str]) -> str:
    options = {name: value for name, value in asked.items() if name != "id"}
    return command_line.command("replay", asked.get("id"), options)
