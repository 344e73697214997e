"""What no setting can know alone: figures that must fit each other, keys that belong to one kind only, names that must
lead somewhere. A problem keeps everything from starting; a note is told and left to people.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING

from pillarbox.core.clock import seconds
from pillarbox.ops.settings.origin import Entry, Path, dotted
from pillarbox.ops.settings.ways_out import DestinationSettings, TransportSettings

if TYPE_CHECKING:
    from pillarbox.ops.settings.settings import Settings

Entries = Mapping[str, Entry]

_MENTIONED = re.compile(r"\b(?:relay\.retry|relay|retry|store)\.[a-z_]+")
_ELSEWHERE = {
    "relay.history": "store.history",
    "relay.dead": "store.dead_retention",
    "relay.receipts": "store.inbox_retention",
    "relay.ledger": "store.ledger_retention",
    "relay.audit": "store.audit_retention",
}
"""What the library calls otherwise than the file does."""


def by_place(message: str, entries: Entries) -> str:
    """A message of the library, its settings called as whoever set them calls them."""

    def called(found: re.Match[str]) -> str:
        name = re.sub(r"^retry\.", "relay.retry.", found[0])
        name = _ELSEWHERE.get(name, name)
        return entries[name].called if name in entries else name

    return _MENTIONED.sub(called, message)


def problems(settings: Settings, entries: Entries) -> Iterator[str]:
    """What cannot work."""
    relay = settings.relay
    for name in ("poll_interval", "heartbeat", "send_timeout"):
        if seconds(getattr(relay, name)) == 0:
            yield f"{entries[f'relay.{name}'].called} is {getattr(relay, name)}: it must be longer than nothing"
    for name, transport in settings.transports.items():
        yield from _transport_problems(("transports", name), transport, entries)
    for name, destination in settings.destinations.items():
        yield from _destination_problems(settings, ("destinations", name), destination, entries)
    for at, route in enumerate(settings.routes):
        for name in route.to:
            if name not in settings.destinations:
                near = _nearest(name, settings.destinations)
                yield f"{_called(entries, (f'routes[{at}]', 'to'))} names {name!r}, which is no destination{near}"
    for entry in entries.values():
        if entry.written and not _belongs(entry, settings):
            kinds, wanted = " with ".join(_kinds(entry, settings)), " and ".join(entry.key.only_for)
            yield f"{entry.called} is only for {wanted}, and this is {kinds}: take it out"


def notes(settings: Settings, entries: Entries) -> Iterator[str]:
    """What works, and what somebody should know."""
    relay, store = settings.relay, settings.store
    horizon = relay.retry.horizon()
    if store.keeps_history and store.history != "forever" and seconds(store.history) < horizon < float("inf"):
        yield by_place(
            f"store.history {store.history} is shorter than the {horizon / 3600:.1f} h for which an event is tried: "
            "of one with several destinations, what was delivered is forgotten while the rest is still tried",
            entries,
        )
    if not relay.adaptive and settings.record.wakeup == "notify":
        yield by_place(
            'relay.adaptive is false, but record.wakeup is "notify", which wakes the relay before its time: '
            'write record.wakeup = "none" for a fixed delay',
            entries,
        )
    if seconds(relay.drain_timeout) < seconds(relay.send_timeout):
        yield by_place(
            f"relay.drain_timeout {relay.drain_timeout} is shorter than relay.send_timeout {relay.send_timeout}: "
            "what a stopping relay has just sent may be sent again by another",
            entries,
        )
    if entries["store.schema"].written and not store.url.startswith("postgres"):
        yield f"{entries['store.schema'].called} concerns PostgreSQL only"
    for name, transport in settings.transports.items():
        for queue in transport.queues:
            if queue.overflow == "drop-head":
                yield (
                    f"transports.{name}: the queue {queue.name!r} throws messages away that were confirmed "
                    '(overflow = "drop-head"); "reject-publish" lets them wait in the outbox'
                )


def in_force(entries: Sequence[Entry], settings: Settings) -> tuple[Entry, ...]:
    """Without the defaults of keys that belong to another kind, and of those that have none."""
    return tuple(
        entry
        for entry in entries
        if entry.origin.kind not in ("default", "preset") or (_belongs(entry, settings) and entry.shown is not None)
    )


def _transport_problems(path: Path, transport: TransportSettings, entries: Entries) -> Iterator[str]:
    given = [entry for name in ("url", "import") if (entry := entries[dotted((*path, name))]).written]
    if not given:
        yield f"{dotted(path)} has neither url nor import, so it leads nowhere"
    elif len(given) > 1:
        yield f"{given[0].called} and {given[1].called} are both set: a transport has one of them"
    elif transport.kind != "rabbitmq" and (transport.exchanges or transport.queues):
        yield f"{dotted(path)} has exchanges or queues, which are only for rabbitmq, and this is {transport.kind}"


def _destination_problems(
    settings: Settings, path: Path, destination: DestinationSettings, entries: Entries
) -> Iterator[str]:
    name = destination.transport
    if name is not None and name not in settings.transports:
        near = _nearest(name, settings.transports)
        yield f"{_called(entries, (*path, 'transport'))} is {name!r}, which is no transport{near}"
    if name is None and len(settings.transports) != 1:
        known = ", ".join(settings.transports) or "none"
        yield f"{dotted((*path, 'transport'))} is missing: say which it is; there are {known}"


def _belongs(entry: Entry, settings: Settings) -> bool:
    kinds = _kinds(entry, settings)
    return not entry.key.only_for or not kinds or bool({*entry.key.only_for} & {*kinds})


def _kinds(entry: Entry, settings: Settings) -> tuple[str, ...]:
    """What a table is, where that decides on its keys; () where it is wrong and nobody can tell."""
    match entry.path:
        case ("relay", "retry", _):
            return (settings.relay.retry.policy,)
        case ("transports", name, _):
            return (kind,) if (kind := settings.transports[name].kind) else ()
        case ("destinations", name, _):
            transport = settings.transport_of(name)
            return () if transport is None else (transport.kind, settings.destinations[name].body)
        case _:
            return ()


def _called(entries: Entries, path: Path) -> str:
    return entries[dotted(path)].called


def _nearest(name: str, known: Mapping[str, object]) -> str:
    if near := get_close_matches(name, list(known), n=1):
        return f"; did you mean {near[0]!r}?"
    return f"; there are {', '.join(known)}" if known else "; there is none"
