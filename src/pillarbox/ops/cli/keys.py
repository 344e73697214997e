"""`pillarbox keys`: which keys stand still, and which have the most to do."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from pillarbox.admin.keys import BEHIND, SAMPLE, BlockedKey, HotKey
from pillarbox.ops.cli.exits import NotFound
from pillarbox.ops.cli.output import as_json, number, print_json, print_table, span
from pillarbox.ops.cli.parameters import limit_option


@click.group()
def keys() -> None:
    """Keys that stand still, and keys with the most to do."""


@keys.command()
@limit_option
@as_json
def blocked(limit: int, as_json: bool) -> None:
    """Keys that their head holds up, and how many are known to wait behind it.

    Until a person decides, if it was given up under `on_exhausted = "block"`: `pillarbox dead retry ID` sends it again,
    `dead discard ID` drops it for good. Until its next try, if others wait behind it: `events retry ID` sends it now.
    `keys bury ID` makes a dead letter of either; then the key goes on.

    \b
    Examples:
      pillarbox keys blocked
      pillarbox keys blocked --limit 10 --json
    """
    from pillarbox.ops.cli.working import with_shared_store
    from pillarbox.ops.exports import blocked_key

    found = with_shared_store(lambda store: store.admin.keys.blocked(limit=limit))
    if as_json:
        print_json({"blocked": [blocked_key(key) for key in found]})
    elif not found:
        click.echo("no key stands still")
    else:
        print_table(
            ["key", "destination", "event", "type", "since", "until", "behind", "error"],
            [_row(key) for key in found],
        )


def _row(key: BlockedKey) -> list[object]:
    behind = number(key.behind, most=BEHIND)
    return [key.key, key.destination, key.event_id, key.event_type, key.since, _until(key), behind, key.error]


def _until(key: BlockedKey) -> str:
    if key.next_try is None:
        return "a person decides"
    left = (key.next_try - datetime.now(UTC)).total_seconds()
    return f"its retry in {span(left)}" if left > 0 else "its retry, now"


@keys.command()
@limit_option
@as_json
def hot(limit: int, as_json: bool) -> None:
    """The keys with the most messages among the first that wait; and what would let them leave faster.

    \b
    Examples:
      pillarbox keys hot
      pillarbox keys hot --limit 5 --json
    """
    from pillarbox.admin.admin import AdminStore
    from pillarbox.ops import hot_keys
    from pillarbox.ops.cli.context import current_settings
    from pillarbox.ops.cli.working import with_shared_store

    async def look(store: AdminStore) -> tuple[list[HotKey], HotKey | None]:
        hot = await store.admin.keys.hot(limit=limit)
        return hot, await hot_keys.find_limited(store, hot)

    found, limited = with_shared_store(look)
    advice = hot_keys.advice(current_settings()) if limited is not None else ""
    if as_json:
        print_json({"hot": [key._asdict() for key in found], "of_the_first": SAMPLE, "advice": advice or None})
    elif not found:
        click.echo("nothing with a key waits")
    else:
        print_table(["key", "waiting"], [[key.key, number(key.waiting)] for key in found])
        if limited is not None and advice:
            click.echo(f"{limited.key}: {advice}", err=True)


@keys.command()
@click.argument("event_id", metavar="ID")
@as_json
def bury(event_id: str, as_json: bool) -> None:
    """Make a dead letter of the event that holds its key up, so that the key goes on.

    It was given up and stays, or it waits for its retry. The relay that owns its lane does it with its next look.

    \b
    Examples:
      pillarbox keys blocked
      pillarbox keys bury 0190a5c2-7b1e-7d11-a01c-5f0c0d9f4a11
    """
    from pillarbox.ops import steering
    from pillarbox.ops.cli.working import operator, warn_without_relay, with_shared_store

    asked = with_shared_store(lambda store: steering.bury(store, event_id, by=operator()))
    if not asked:
        raise NotFound(f"{event_id} holds no key up: `pillarbox keys blocked` shows what does")
    if as_json:
        print_json({"event_id": event_id, "requested": asked})
    else:
        click.echo(f"requested for {', '.join(asked)}")
    warn_without_relay()
