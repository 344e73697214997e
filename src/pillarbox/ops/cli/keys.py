"""`pillarbox keys`: list blocked and busiest ordering keys."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from pillarbox.admin.keys import SAMPLED, WAITING_COUNTED, BlockedKey, BusiestKey
from pillarbox.ops.cli.keys_requests import discard, groups, retry, skip
from pillarbox.ops.cli.output import as_json, number, print_json, print_table, span
from pillarbox.ops.cli.parameters import limit_option


@click.group()
def keys() -> None:
    """Show blocked and busiest ordering keys; retry, skip or discard the events that block them.

    \b
    Examples:
      pillarbox keys groups
      pillarbox keys retry --group 3f9a1c27b0de
      pillarbox keys skip 0190a5c2-7b1e-7d11-a01c-5f0c0d9f4a11
    """


for _command in (groups, retry, skip, discard):
    keys.add_command(_command)


@keys.command()
@limit_option
@as_json
def blocked(limit: int, as_json: bool) -> None:
    """List keys whose first pending event holds the others back, and how many events wait for it.

    An event that failed under `on_exhausted = "block"` waits for an operator, another one for its retry. For either,
    `keys retry ID` sends it now, `keys skip ID` dead-letters it and `keys discard ID` deletes it.

    \b
    Examples:
      pillarbox keys blocked
      pillarbox keys blocked --limit 10 --json
    """
    from pillarbox.ops.cli.store_access import with_shared_store
    from pillarbox.ops.exports import blocked_key

    found = with_shared_store(lambda store: store.admin.keys.blocked(limit=limit))
    if as_json:
        print_json({"blocked": [blocked_key(key) for key in found]})
    elif not found:
        click.echo("no keys are blocked")
    else:
        print_table(
            ["key", "destination", "event", "type", "since", "until", "waiting", "error"],
            [_row(key) for key in found],
        )


def _row(key: BlockedKey) -> list[object]:
    waiting = number(key.waiting, most=WAITING_COUNTED)
    return [key.key, key.destination, key.event_id, key.event_type, key.since, _until(key), waiting, key.error]


def _until(key: BlockedKey) -> str:
    if key.next_retry_at is None:
        return "an operator decides"
    left = (key.next_retry_at - datetime.now(UTC)).total_seconds()
    return f"its retry in {span(left)}" if left > 0 else "its retry, now"


@keys.command()
@limit_option
@as_json
def busiest(limit: int, as_json: bool) -> None:
    """List the keys with the most events among the first 10,000 pending, and how to send them faster.

    \b
    Examples:
      pillarbox keys busiest
      pillarbox keys busiest --limit 5 --json
    """
    from pillarbox.admin.admin import AdminStore
    from pillarbox.ops import busiest_keys
    from pillarbox.ops.cli.context import current_settings
    from pillarbox.ops.cli.store_access import with_shared_store

    async def read(store: AdminStore) -> tuple[list[BusiestKey], BusiestKey | None]:
        found = await store.admin.keys.busiest(limit=limit)
        return found, await busiest_keys.find_limited(store, found)

    found, limited = with_shared_store(read)
    advice = busiest_keys.advice(current_settings()) if limited is not None else ""
    if as_json:
        print_json({"busiest": [key._asdict() for key in found], "sample_size": SAMPLED, "advice": advice or None})
    elif not found:
        click.echo("no pending events with a key")
    else:
        print_table(["key", "pending"], [[key.key, number(key.pending)] for key in found])
        if limited is not None and advice:
            click.echo(f"{limited.key}: {advice}", err=True)
