"""What a section cannot check alone: keys that belong to another kind, names that must exist, and values of several
sections. A problem keeps everything from starting; a note is only reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from pillarbox.core.clock import seconds
from pillarbox.ops.settings.origin import Path, SettingEntry, dotted
from pillarbox.ops.settings.tables import parts_of
from pillarbox.ops.settings.transports import DestinationSettings, TransportSettings
from pillarbox.schemes import scheme_of, store_plugin
from pillarbox.settings import settings_of

if TYPE_CHECKING:
    from pillarbox.ops.settings.settings import Settings

Entries = Mapping[Path, SettingEntry]


def problems(settings: Settings, entries: Entries) -> Iterator[str]:
    """What cannot work."""
    if settings.relay.config.at_most_once and settings.store.ledger is not True:
        yield (
            f"{_called(entries, ('relay', 'at_most_once'))} needs a ledger, and "
            f"{_called(entries, ('store', 'ledger'))} is {_written(settings.store.ledger)}: set store.ledger = true"
        )
    for name, transport in settings.transports.items():
        yield from _transport_problems(("transports", name), transport, entries)
    for name, destination in settings.destinations.items():
        yield from _destination_problems(settings, ("destinations", name), destination, entries)
    for at, route in enumerate(settings.routes):
        for name in route.to:
            if name not in settings.destinations:
                near = _nearest(name, settings.destinations)
                yield f"{_called(entries, (f'routes[{at}]', 'to'))} names {name!r}, which is not a destination{near}"
    for entry in entries.values():
        if entry.written and not _belongs(entry, settings):
            kinds, wanted = " with ".join(_kinds(entry, settings)), " and ".join(entry.key.only_for)
            yield f"{entry.called} is only for {wanted}, and this is {kinds}: remove it"


def notes(settings: Settings, entries: Entries) -> Iterator[str]:
    """What works, but may surprise."""
    relay, kept = settings.relay.config, settings.relay.config.retention.history
    horizon = settings.relay.retry.horizon()
    if settings.store.history and kept != "forever" and seconds(kept) < horizon < float("inf"):
        yield (
            f"{_called(entries, ('relay', 'retention', 'history'))} is {kept}, but an event is retried for up to "
            f"{horizon / 3600:.1f} h: of an event with several destinations, the delivery to one is forgotten while "
            "the others are retried"
        )
    if not relay.adaptive and relay.wakeup == "notify":
        yield (
            f"{_called(entries, ('relay', 'adaptive'))} is false, but {_called(entries, ('relay', 'wakeup'))} is "
            '"notify", so commits wake the relay before poll_interval has passed: set relay.wakeup = "none" for a '
            "fixed delay"
        )
    if seconds(relay.drain_timeout) < seconds(relay.send_timeout):
        yield (
            f"{_called(entries, ('relay', 'drain_timeout'))} is {relay.drain_timeout}, shorter than "
            f"{_called(entries, ('relay', 'send_timeout'))} ({relay.send_timeout}): another relay may send again what "
            "a stopping relay has just sent"
        )
    scheme = scheme_of(settings.store.url)
    for name in store_plugin(scheme).ignored:
        if entries["store", name].written:
            yield f"{_called(entries, ('store', name))} has no effect on {scheme}://"
    for name, transport in settings.transports.items():
        for queue in transport.rabbitmq.queues:
            if queue.overflow == "drop-head":
                yield (
                    f"transports.{name}: the queue {queue.name!r} discards messages that were confirmed "
                    '(overflow = "drop-head"); with "reject-publish" they wait in the outbox'
                )
        for stream in transport.nats.streams:
            if stream.discard == "old" and (stream.max_msgs is not None or stream.max_bytes is not None):
                yield (
                    f"transports.{name}: the stream {stream.name!r} discards messages that were confirmed "
                    '(discard = "old"); with "new" they wait in the outbox'
                )


def in_force(entries: Iterable[SettingEntry], settings: Settings) -> tuple[SettingEntry, ...]:
    """Without the defaults of keys that belong to another kind, and of those that have none."""
    return tuple(
        entry
        for entry in entries
        if entry.origin.kind not in ("default", "preset") or (_belongs(entry, settings) and entry.shown is not None)
    )


def _transport_problems(path: Path, transport: TransportSettings, entries: Entries) -> Iterator[str]:
    given = [entry for name in ("url", "import") if (entry := entries[(*path, name)]).written]
    if not given:
        yield f"{dotted(path)} has neither url nor import: set one of them"
        return
    if len(given) > 1:
        yield f"{given[0].called} and {given[1].called} are both set: a transport has one of them; remove the other"
        return
    if transport.kind and not transport.has_own:
        options = transport.options or {}
        yield from _option_problems((*path, "options"), options, transport.plugin.transport_options, transport.kind)
    for part in parts_of(TransportSettings).values():
        if getattr(getattr(transport, part.holder), part.name) and transport.kind not in part.only_for:
            wanted = " and ".join(part.only_for)
            yield f"{dotted(path)} has {part.name}, which are only for {wanted}, and this is {transport.kind}"


def _destination_problems(
    settings: Settings, path: Path, destination: DestinationSettings, entries: Entries
) -> Iterator[str]:
    name = destination.transport
    if name is not None and name not in settings.transports:
        near = _nearest(name, settings.transports)
        yield f"{_called(entries, (*path, 'transport'))} is {name!r}, which is not a transport{near}"
    if name is None and len(settings.transports) != 1:
        known = ", ".join(settings.transports) or "none"
        yield f"{dotted((*path, 'transport'))} is missing: name one of the transports; there are {known}"
    transport = settings.transport_of(path[-1])
    if destination.target is not None and transport is not None:
        own = [entry for entry in entries.values() if entry.path[:-1] == path and transport.kind in entry.key.only_for]
        for entry in own:
            if entry.written:
                yield f"{entry.called} and {_called(entries, (*path, 'target'))} are both set: remove one of them"
    if transport is not None and transport.kind and not transport.has_own:
        options, defined = destination.options or {}, transport.plugin.destination_options
        yield from _option_problems((*path, "options"), options, defined, transport.kind)
    if destination.ordering == "pipelined" and transport is not None and transport.kind:
        called = _called(entries, (*path, "ordering"))
        if not transport.plugin.pipelined:
            yield f'{called} is "pipelined", which {transport.kind} does not support: remove it'


def _option_problems(path: Path, options: Mapping[str, Any], defined: type[Any] | None, kind: str) -> Iterator[str]:
    """What is wrong with options that an adapter defines."""
    known = {} if defined is None else {one.name: one for one in settings_of(defined)}
    for name, value in options.items() if known else ():
        if name not in known:
            yield f"{dotted((*path, name))} is not an option of {kind}{_nearest(name, known)}"
            continue
        try:
            known[name].kind.read(value)
        except ValueError as hint:
            is_value = "" if known[name].secret else f" is {value!r}"
            yield f"{dotted((*path, name))}{is_value}: {hint}"


def _belongs(entry: SettingEntry, settings: Settings) -> bool:
    kinds = _kinds(entry, settings)
    return not entry.key.only_for or not kinds or bool({*entry.key.only_for} & {*kinds})


def _kinds(entry: SettingEntry, settings: Settings) -> tuple[str, ...]:
    """What a table is, where that decides on its keys; () where that is unknown."""
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
    return entries[path].called


def _written(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else f'"{value}"'


def _nearest(name: str, known: Mapping[str, object]) -> str:
    if near := get_close_matches(name, list(known), n=1):
        return f"; did you mean {near[0]!r}?"
    return f"; there are {', '.join(known)}" if known else "; there are none"
