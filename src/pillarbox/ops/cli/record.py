"""`pillarbox record`: record one event from the shell, or many from lines of JSON in transactions of 500."""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import IO, TYPE_CHECKING, Any

import click

from pillarbox.core.errors import DuplicateEventError, RecordError
from pillarbox.core.text import plural
from pillarbox.ops.cli.output import Advance, as_json, print_json, progress
from pillarbox.ops.cli.parameters import age, header

if TYPE_CHECKING:
    from pillarbox.core.event import Event
    from pillarbox.ops.settings import Settings

BATCH = 500
"""Lines per transaction."""
MOST_ERRORS = 20
"""Invalid lines that a dry run reports before it stops."""


@click.command()
@click.argument("event_type", required=False)
@click.argument("payload", required=False)
@click.option("--id", "event_id", metavar="TEXT", help="Event id; default: a new UUIDv7.")
@click.option("--key", help="Events of one key are delivered in order.")
@click.option("--aggregate-type", metavar="TYPE", help="Type of the business object, such as order.")
@click.option("--aggregate-id", metavar="ID", help="Together with --aggregate-type, the default key.")
@click.option("--destination", metavar="NAME", help="Destination, instead of the routes.")
@click.option("--header", "headers", type=header, multiple=True, metavar="NAME=VALUE", help="Set a header; repeatable.")
@click.option("--content-type", metavar="TYPE", help="Default: application/json; with another one PAYLOAD is any text.")
@click.option("--correlation-id", metavar="TEXT", help="Identify the business transaction; default: none.")
@click.option("--causation-id", metavar="TEXT", help="Id of the event or command that caused this one; default: none.")
@click.option("--trace-id", metavar="TEXT", help="Id of the trace; default: none.")
@click.option("--schema-version", type=int, metavar="NUMBER", help="Version of the payload's schema; default: 1.")
@click.option("--delay", type=age, metavar="DURATION", help="Do not send before this delay, such as 5m; default: none.")
@click.option(
    "--ndjson", type=click.File("rb"), metavar="FILE", help="Read events from lines of JSON; - is standard input."
)
@click.option("--dry-run", is_flag=True, help="Validate only, record nothing.")
@as_json
def record(
    event_type: str | None,
    payload: str | None,
    ndjson: IO[bytes] | None,
    dry_run: bool,
    as_json: bool,
    **fields: Any,
) -> None:
    """Record one event, or many from a file.

    PAYLOAD is JSON, an object or a list; default: {}; - reads it from standard input. With --ndjson each line is an
    object with event_type, payload (or payload_base64) and other fields of an event. If a line is invalid, all lines
    before it are recorded, it and those after it are not, and the error has its number.

    \b
    Examples:
      pillarbox record order.placed '{"id": 42}' --aggregate-type ORDER --aggregate-id 42
      pillarbox record report.due --delay 5m --header tenant=acme
      pillarbox record --ndjson - --dry-run < events.ndjson
    """
    from pillarbox.ops.cli.context import current_settings
    from pillarbox.ops.cli.store_access import name_default_store, refuse_memory

    settings = current_settings()
    refuse_memory(settings)
    name_default_store()
    if ndjson is None:
        if event_type is None:
            raise click.UsageError("Give the event type, or a file with --ndjson.")
        _one(settings, _event(event_type, payload, **fields), dry_run=dry_run, as_json=as_json)
        return
    if event_type is not None or any(fields.values()):
        raise click.UsageError("--ndjson cannot be combined with an event type or its options.")
    _many(settings, ndjson, dry_run=dry_run, as_json=as_json)


def _event(
    event_type: str, payload: str | None, *, delay: float | None, headers: Sequence[tuple[str, str]], **fields: Any
) -> Event:
    from pillarbox.core.event import JSON, Event
    from pillarbox.core.payload import is_json

    given = {name: value for name, value in fields.items() if value is not None}
    if delay is not None:
        given["available_at"] = datetime.now(UTC) + timedelta(seconds=delay)
    text = sys.stdin.buffer.read() if payload == "-" else (payload or "{}").encode()
    if is_json(given.get("content_type", JSON)):
        return Event(event_type, _decoded(text), headers=dict(headers), **given)
    return Event(event_type, text, headers=dict(headers), **given)


def _decoded(text: bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RecordError(
            f"payload is not JSON: {error}; quote it for the shell, or set --content-type",
            field="payload",
        ) from None


def _one(settings: Settings, event: Event, *, dry_run: bool, as_json: bool) -> None:
    _check(settings, event)
    if not dry_run:
        with _recording(settings) as record:
            record([event])
    if as_json:
        print_json({"recorded": int(not dry_run), "event_ids": [event.event_id], "dry_run": dry_run})
    else:
        click.echo(f"would record {event.event_type}" if dry_run else event.event_id)


def _many(settings: Settings, lines: IO[bytes], *, dry_run: bool, as_json: bool) -> None:
    work = _check_all if dry_run else _record_all
    with progress("checking" if dry_run else "recording", size=_size(lines)) as advance:
        count = work(settings, lines, advance)
    if as_json:
        print_json({"recorded": 0 if dry_run else count, "checked": count, "dry_run": dry_run})
    else:
        click.echo(f"{'would record' if dry_run else 'recorded'} {plural(count, 'event')}")


Record = Callable[[Sequence["Event"]], None]


@contextmanager
def _recording(settings: Settings) -> Iterator[Record]:
    """Yield a function that records events. Reading lines stays outside the event loop, where Ctrl-C works at once."""
    import asyncio

    from pillarbox.ops.recorder import Recorder

    recorder = Recorder(settings)
    with asyncio.Runner() as runner:

        def record(events: Sequence[Event]) -> None:
            try:
                runner.run(recorder.record(events))
            except DuplicateEventError:
                ids = ", ".join(event.event_id for event in events)
                raise DuplicateEventError(
                    f"{ids} is already pending: `pillarbox --set record.duplicate=ignore record …` skips duplicates",
                    field="event_id",
                ) from None

        try:
            yield record
        finally:
            runner.run(recorder.aclose())


def _record_all(settings: Settings, lines: Iterable[bytes], advance: Advance) -> int:
    count = 0
    batch: list[tuple[int, Event]] = []
    with _recording(settings) as record:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                event = _parsed(line)
            except RecordError as error:
                _record(record, batch)
                raise _at(number, error) from None
            batch.append((number, event))
            if len(batch) == BATCH:
                _record(record, batch)
                count += len(batch)
                batch = []
            advance(amount=len(line), events=1)
        _record(record, batch)
    return count + len(batch)


def _record(record: Record, batch: Sequence[tuple[int, Event]]) -> None:
    """Record a batch in one transaction; if it is rejected, one by one, so that the error names the invalid line."""
    try:
        record([event for _, event in batch])
    except RecordError:
        for number, event in batch:
            try:
                record([event])
            except RecordError as error:
                raise _at(number, error) from None


def _check_all(settings: Settings, lines: Iterable[bytes], advance: Advance) -> int:
    count = wrong = 0
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            _check(settings, _parsed(line))
        except RecordError as error:
            click.echo(f"pillarbox: line {number}: {error}", err=True)
            if (wrong := wrong + 1) == MOST_ERRORS:
                break
        count += 1
        advance(amount=len(line), events=1)
    if wrong:
        raise RecordError(f"{wrong} invalid line{'s' * (wrong > 1)}{' or more' * (wrong == MOST_ERRORS)}")
    return count


def _parsed(line: bytes) -> Event:
    from pillarbox.ops.ndjson import event_of

    try:
        return event_of(line.decode())
    except UnicodeDecodeError as error:
        raise RecordError(f"the line is not UTF-8: {error.reason} at byte {error.start}") from None


def _check(settings: Settings, event: Event) -> None:
    """Validate an event without a store."""
    from pillarbox.record.rows import row_of

    row_of(event, registry=None, max_payload=settings.store.max_payload)


def _at(number: int, error: RecordError) -> RecordError:
    return RecordError(
        f"line {number}: {error}; the lines before it are recorded, it and those after it are not", field=error.field
    )


def _size(lines: IO[bytes]) -> int | None:
    try:
        found = os.fstat(lines.fileno())
    except OSError:
        return None
    return found.st_size if stat.S_ISREG(found.st_mode) else None
