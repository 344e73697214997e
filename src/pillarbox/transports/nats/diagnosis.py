"""The checks of NATS, and of what the settings want of it. They create nothing and send no message to a stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pillarbox.admin.diagnosis import Check, CheckResult, failed, passed, warned
from pillarbox.core.clock import Duration
from pillarbox.core.errors import UnavailableError
from pillarbox.core.payload import Size, size_in_bytes
from pillarbox.settings.shared import DEFAULT_MAX_PAYLOAD
from pillarbox.settings.tls import Tls
from pillarbox.transports.nats.connection import NatsConnector
from pillarbox.transports.nats.headers import ApiError
from pillarbox.transports.nats.plugin import NatsAddress, NatsEndpoint, NatsOptions
from pillarbox.transports.nats.publisher import RESERVE
from pillarbox.transports.nats.topology import Stream, check_streams, stream_for

_SECOND = 1_000_000_000
_NEARLY_FULL = 0.9
_LIMITS = ("max_msgs", "max_bytes", "max_msgs_per_subject")
_SYNC = (
    "NATS syncs files every 2 minutes unless the server sets jetstream.sync_interval (from 2.10 on), which it does not "
    "tell its clients"
)


class NatsDiagnosis:
    """The checks of one server or cluster. Connects on first use. Raises ConfigurationError."""

    def __init__(
        self,
        url: str,
        *,
        streams: Sequence[Stream] = (),
        addresses: Mapping[str, NatsAddress] | None = None,
        declare: bool = NatsOptions.declare,
        replicas: int = NatsOptions.replicas,
        retry_horizon: float | None = None,
        max_payload: Size = DEFAULT_MAX_PAYLOAD,
        timeout: Duration = "5s",
        tls: Tls = None,
    ) -> None:
        """`addresses` are the destinations; `replicas` those of a stream that an event creates; `retry_horizon` are
        the seconds within which a relay sends a message again whose result it does not know; `max_payload` is the limit
        of the outbox; `timeout` limits connecting and each reply."""
        self._endpoint = NatsEndpoint.parse(url, tls)
        self._streams = check_streams(streams)
        self._addresses = dict(addresses or {})
        self._declare = declare
        self._replicas_of_new = replicas
        self._retry_horizon = retry_horizon
        self._max_payload = size_in_bytes(max_payload, field="max_payload")
        self._connector = NatsConnector(
            self._endpoint, connect_timeout=timeout, reply_timeout=timeout, what="connection"
        )

    def checks(self) -> Sequence[Check]:
        """In this order: a failed check may explain later ones."""
        return [
            Check(name="transport.reachable", ask=self._reachable, prerequisite=True),
            Check(name="transport.jetstream", ask=self._jetstream, prerequisite=True),
            Check(name="transport.destinations", ask=self._destinations),
            Check(name="transport.topology", ask=self._topology),
            Check(name="transport.overflow", ask=self._overflow),
            Check(name="transport.replicas", ask=self._replicas),
            Check(name="transport.durability", ask=self._durability),
            Check(name="transport.duplicates", ask=self._duplicates),
            Check(name="transport.sizes", ask=self._sizes),
        ]

    async def aclose(self) -> None:
        """Close what is open; closing twice is fine."""
        await self._connector.aclose()

    async def _reachable(self) -> CheckResult:
        try:
            connection = await self._connector.ready()
        except UnavailableError as error:
            return failed(str(error), "check that the server runs, and host, port, user, password or token in the URL")
        info = connection.wire.info
        return passed(f"NATS {info.get('version', '')} ({info.get('server_name', '')}) at {connection.server}")

    async def _jetstream(self) -> CheckResult:
        connection = await self._connector.ready()
        try:
            account = await connection.request("INFO")
        except (ApiError, UnavailableError) as error:
            return failed(
                f"JetStream is not available: {error}",
                "enable JetStream on the server (jetstream {}) and for the account of this user",
            )
        used, limit = int(account.get("storage", 0)), int(account.get("limits", {}).get("max_storage", -1))
        facts = f"JetStream is enabled: {account.get('streams', 0)} streams, {used} bytes in files"
        if 0 < limit <= used / _NEARLY_FULL:
            return warned(
                f"{facts}, of {limit} that this account may use", "delete old messages, or raise the account's limit"
            )
        return passed(facts)

    async def _destinations(self) -> CheckResult:
        wrong = [
            f"{name}: {fault}" for name, address in self._addresses.items() if (fault := await self._missing(address))
        ]
        if wrong:
            return failed(
                "; ".join(wrong),
                "create the stream, correct the destination, or add the stream to the transport's settings",
            )
        if not self._addresses:
            return passed("no destination is configured: each event goes to the subject of its type")
        return passed(f"every subject has a stream, or gets one from the first event: {', '.join(self._addresses)}")

    async def _missing(self, address: NatsAddress) -> str:
        """What a destination needs that is missing and that no relay creates; '': nothing."""
        if (pattern := address.pattern) is None:
            return ""
        catalog = (await self._connector.ready()).streams
        names = await catalog.names(pattern)
        if self._declare:
            names += [one.name for one in self._streams if one.name not in names and one.has(pattern)]
        if address.expected_stream and names and address.expected_stream not in names:
            return f"subject {pattern!r} belongs to stream {names[0]!r}, not to {address.expected_stream!r}"
        if names or (self._declare and address.creates and not address.expected_stream):
            return ""
        return f"no stream has subject {pattern!r}"

    async def _topology(self) -> CheckResult:
        catalog = (await self._connector.ready()).streams
        if silent := [name for name, config in (await self._existing()).items() if config.get("no_ack")]:
            return failed(
                f"confirms nothing (no_ack), so that every event is sent again and again: {', '.join(silent)}",
                "create the stream without no_ack",
            )
        wrong: list[str] = []
        for stream in self._streams:
            existing = await catalog.read(stream.name)
            if existing is None and not self._declare:
                wrong.append(f"{stream.label} does not exist")
            elif existing is not None and (differences := stream.differences(existing)):
                wrong.append(f"{stream.label} has {'; '.join(differences)}")
        if not wrong:
            return passed("existing streams match the settings")
        if self._declare:
            return failed(
                f"{'; '.join(wrong)}: the relay sends nothing until this is corrected",
                "change the settings, or the stream (nats stream edit), or set declare = false",
            )
        return warned("; ".join(wrong), "change the settings, or the stream")

    async def _overflow(self) -> CheckResult:
        existing = await self._existing()
        configured = {stream.name for stream in self._streams if stream.discard == "old"}
        dropping = [
            name
            for name, config in existing.items()
            if config.get("discard") == "old" and max(config.get(limit, -1) for limit in _LIMITS) > 0
        ]
        fix = 'set discard = "new": then events wait in the outbox while the stream is full'
        if unexpected := [name for name in dropping if name not in configured]:
            return failed(f"discards confirmed messages when it is full (discard old): {', '.join(unexpected)}", fix)
        if unread := [name for name, config in existing.items() if config.get("retention") == "interest"]:
            return warned(
                f"confirms and discards what is sent while no consumer exists (interest): {', '.join(unread)}",
                'create the consumers first, or use a stream with retention = "limits"',
            )
        if dropping:
            return warned(
                f"discards confirmed messages when it is full, as configured (discard old): {', '.join(dropping)}", fix
            )
        return passed("no stream discards confirmed messages because it is full")

    async def _replicas(self) -> CheckResult:
        clustered = bool((await self._connector.ready()).wire.info.get("cluster"))
        existing = await self._existing()
        doubtful: list[str] = []
        for name, config in existing.items():
            count: int = config["num_replicas"]
            cluster: dict[str, Any] = config.get("cluster") or {}
            replicas: list[dict[str, Any]] = cluster.get("replicas") or []
            late = [one["name"] for one in replicas if one.get("offline") or not one.get("current")]
            if clustered and not cluster.get("leader"):
                doubtful.append(f"{name} has no leader")
            elif late:
                doubtful.append(f"{name} has replicas that are offline or behind: {', '.join(late)}")
            elif clustered and count < 3:
                doubtful.append(f"{name} has {count} of 3 replicas")
        planned = await self._planned()
        if clustered:
            doubtful += [
                f"{name} will have {config['num_replicas']} of 3 replicas"
                for name, config in planned.items()
                if config["num_replicas"] < 3
            ]
        if doubtful:
            return warned(
                "; ".join(doubtful), "set replicas = 3 (nats stream edit --replicas 3); start the servers that are down"
            )
        if not existing:
            return passed("no stream of the settings exists yet")
        if not clustered:
            return passed("one server without a cluster: streams have one replica")
        return passed(f"all replicas are current: {', '.join(existing)}")

    async def _durability(self) -> CheckResult:
        streams = await self._existing() | await self._planned()
        if in_memory := [name for name, config in streams.items() if config.get("storage") == "memory"]:
            return failed(
                f"kept in memory, lost by the next restart of the server: {', '.join(in_memory)}",
                'use a new stream with storage = "file"',
            )
        if single := [name for name, config in streams.items() if config["num_replicas"] == 1]:
            return warned(
                f"one replica: {', '.join(single)}. A crash of the server loses nothing; a power loss may lose "
                f"confirmed messages: {_SYNC}",
                "use 3 replicas on separate power, or set sync_interval: always; fine if losing two minutes is",
            )
        if not streams:
            return passed("no stream of the settings exists yet, and none is created")
        return passed(f"files on several servers: a power loss of all at once may lose confirmed messages; {_SYNC}")

    async def _duplicates(self) -> CheckResult:
        streams = await self._existing() | await self._planned()
        windows = {name: config["duplicate_window"] / _SECOND for name, config in streams.items()}
        if not windows:
            return passed("no stream of the settings exists yet, and none is created")
        name = min(windows, key=lambda one: windows[one])
        shortest = windows[name]
        facts = f"the shortest duplicate window is {shortest:g} s ({name})"
        after = "a message that a relay sends again later is stored twice, and the inbox of the consumer skips it"
        if self._retry_horizon is not None and shortest < self._retry_horizon:
            return warned(
                f"{facts}; a relay may send a message again {self._retry_horizon:g} s after it was stored: {after}",
                f'set duplicate_window = "{self._retry_horizon:.0f}s" or more',
            )
        return passed(f"{facts}, long enough for the retries of a relay; after an outage that lasts longer, {after}")

    async def _sizes(self) -> CheckResult:
        server = (await self._connector.ready()).max_payload
        existing = await self._existing()
        streams = {stream.name: int(stream.config()["max_msg_size"]) for stream in self._streams}
        streams |= {name: int(config.get("max_msg_size", -1)) for name, config in existing.items()}
        needed = self._max_payload + RESERVE
        short = [f"max_payload of the server is {server}"] if server < 2 * RESERVE + self._max_payload else []
        short += [f"max_msg_size of stream {name} is {size}" for name, size in streams.items() if 0 < size < needed]
        if short:
            return warned(
                f"events have up to {self._max_payload} bytes (record.max_payload) and {RESERVE} of headers, and "
                f"{'; '.join(short)}: larger events are dead-lettered. Of max_payload, {RESERVE} bytes are for retries",
                f"raise max_payload of the server to {needed + RESERVE} and max_msg_size to {needed}, or lower "
                "record.max_payload",
            )
        return passed(f"the server and its streams accept payloads of {self._max_payload} bytes")

    async def _existing(self) -> dict[str, dict[str, Any]]:
        """The streams of the settings and of the destinations, as the server has them."""
        catalog = (await self._connector.ready()).streams
        names = dict.fromkeys(stream.name for stream in self._streams)
        for address in self._addresses.values():
            if address.pattern is not None:
                names |= dict.fromkeys(await catalog.names(address.pattern))
        found = {name: await catalog.read(name) for name in names}
        return {name: config for name, config in found.items() if config is not None}

    async def _planned(self) -> dict[str, dict[str, Any]]:
        """The streams that a relay creates, as they will be."""
        if not self._declare:
            return {}
        catalog = (await self._connector.ready()).streams
        planned = [stream for stream in self._streams if await catalog.read(stream.name) is None]
        created = [
            address.pattern
            for address in self._addresses.values()
            if address.pattern is not None
            and address.creates
            and not address.expected_stream
            and not any(stream.has(address.pattern) for stream in self._streams)
            and not await catalog.names(address.pattern)
        ]
        planned += [Stream(name=stream_for(one), subjects=[one], replicas=self._replicas_of_new) for one in created]
        configs = {stream.name: stream.config() for stream in planned}
        if not self._addresses and not self._streams:
            any_type = Stream(name="any", subjects=["any"], replicas=self._replicas_of_new)
            configs["the stream of each event type"] = any_type.config()
        return configs
