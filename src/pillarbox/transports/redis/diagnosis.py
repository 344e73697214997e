"""The checks of a Redis server: what it would lose, and whether it accepts the events of the settings.

The checks write nothing. Managed services often forbid CONFIG: what cannot be read is reported as unknown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pillarbox.admin.diagnosis import Check, CheckResult, failed, passed, warned
from pillarbox.core.clock import Duration
from pillarbox.core.errors import UnavailableError
from pillarbox.core.payload import Size, size_in_bytes
from pillarbox.settings.shared import DEFAULT_MAX_PAYLOAD
from pillarbox.settings.tls import Tls
from pillarbox.transports.redis.connection import ErrorReply, RedisConnector
from pillarbox.transports.redis.plugin import RedisAddress, RedisEndpoint, RedisOptions

_MIN_VERSION = (6, 2)
_SOURCE_VERSION = (7, 0)
_FORBIDDEN = "ask the operator of the server, or grant this user CONFIG GET to check it here"


class RedisDiagnosis:
    """The checks of one server. Connects on first use. Raises ConfigurationError."""

    def __init__(
        self,
        url: str,
        *,
        addresses: Mapping[str, RedisAddress] | None = None,
        wait_replicas: int = RedisOptions.wait_replicas,
        max_payload: Size = DEFAULT_MAX_PAYLOAD,
        timeout: Duration = "5s",
        tls: Tls = None,
    ) -> None:
        """`addresses` are the destinations on this server; `max_payload` is the limit of the outbox; `timeout` limits
        connecting and each reply."""
        self._endpoint = RedisEndpoint.parse(url, tls)
        self._addresses = dict(addresses or {})
        self._wait_replicas = wait_replicas
        self._max_payload = size_in_bytes(max_payload, field="max_payload")
        self._connector = RedisConnector(
            self._endpoint, connect_timeout=timeout, reply_timeout=timeout, what="connection"
        )

    def checks(self) -> Sequence[Check]:
        """In this order: a failed check may explain later ones."""
        return [
            Check(name="transport.reachable", ask=self._reachable, prerequisite=True),
            Check(name="transport.version", ask=self._version),
            Check(name="transport.primary", ask=self._primary),
            Check(name="transport.durability", ask=self._durability),
            Check(name="transport.memory", ask=self._memory),
            Check(name="transport.replicas", ask=self._replicas),
            Check(name="transport.destinations", ask=self._destinations),
            Check(name="transport.sizes", ask=self._sizes),
        ]

    async def aclose(self) -> None:
        """Close what is open; closing twice is fine."""
        await self._connector.aclose()

    async def _reachable(self) -> CheckResult:
        try:
            connection = await self._connector.ready()
            await connection.call("PING")
        except UnavailableError as error:
            return failed(
                str(error), "check that the server runs, and host, port, user, password and database in the URL"
            )
        except ErrorReply as refusal:
            return failed(f"Redis at {self._endpoint} is not ready: {refusal}", "wait until it has loaded its data")
        return passed(f"Redis {connection.server.get('version', '')} at {self._endpoint}")

    async def _version(self) -> CheckResult:
        server = (await self._connector.ready()).server
        version = server.get("version", "")
        number = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
        if number < _MIN_VERSION:
            return failed(f"Redis {version} has no XADD with NOMKSTREAM and MINID", "upgrade it to 6.2 or later")
        if server.get("mode") == "cluster":
            return failed(
                "the server is a node of a cluster, whose redirections are not followed",
                "use a server that is not a cluster, or a proxy that hides the nodes",
            )
        if number < _SOURCE_VERSION:
            return warned(f"Redis {version} can be sent to, but not consumed from", "upgrade it to 7.0 or later")
        return passed(f"Redis {version}, {server.get('mode', 'standalone')}")

    async def _primary(self) -> CheckResult:
        role = (await self._info("replication")).get("role")
        if role == "slave":
            return failed("the server is a replica: it stores no events", "use the address of the master")
        return passed("the server is a master") if role else _unknown("the role of the server")

    async def _durability(self) -> CheckResult:
        appendonly, fsync, save = await self._config("appendonly", "appendfsync", "save")
        if appendonly is None:
            enabled = (await self._info("persistence")).get("aof_enabled")
            if enabled == "0":
                return warned(_NO_AOF, _AOF_FIX)
            return warned("it is unknown how often the server writes events to disk: CONFIG is forbidden", _FORBIDDEN)
        if appendonly != "yes":
            kept = f"; snapshots ({save}) keep the events up to the last one" if save else ", and no snapshots"
            return warned(f"{_NO_AOF}{kept}", _AOF_FIX)
        status = (await self._info("persistence")).get("aof_last_write_status", "ok")
        if status != "ok":
            return failed("the server cannot write its append-only file", "free space on its disk; see its log")
        match fsync:
            case "always":
                return passed("appendfsync always: an accepted event is on the disk of the server")
            case "everysec":
                return warned(
                    "appendfsync everysec: a power failure loses up to two seconds of accepted events, and so does a "
                    "crash of Redis while its disk is busy",
                    "`CONFIG SET appendfsync always`; on a slow disk raise `connections` of the transport",
                )
            case _:
                return warned(
                    f"appendfsync {fsync}: the operating system decides when accepted events reach the disk; a power "
                    "failure loses about 30 seconds of them",
                    "`CONFIG SET appendfsync always`",
                )

    async def _memory(self) -> CheckResult:
        [policy] = await self._config("maxmemory-policy")
        memory = await self._info("memory")
        policy = policy or memory.get("maxmemory_policy")
        if policy is None:
            return _unknown("what the server does when it is out of memory")
        limit, used = int(memory.get("maxmemory", 0)), int(memory.get("used_memory", 0))
        if policy != "noeviction":
            return warned(
                f"maxmemory-policy {policy}: out of memory, the server may delete whole streams with accepted events",
                "`CONFIG SET maxmemory-policy noeviction`: then events wait in the outbox",
            )
        if not limit:
            return passed("noeviction, without a limit of memory")
        if used > limit * 0.9:
            return warned(
                f"{used:,} of {limit:,} bytes of memory are used; once it is full, events wait in the outbox",
                "raise maxmemory, or limit streams with max_length or max_age of their destinations",
            )
        return passed(f"noeviction, {used:,} of {limit:,} bytes of memory are used")

    async def _replicas(self) -> CheckResult:
        replication = await self._info("replication")
        if "connected_slaves" not in replication:
            return _unknown("the number of replicas")
        count = int(replication["connected_slaves"])
        if count < self._wait_replicas:
            return failed(
                f"wait_replicas is {self._wait_replicas}, but {count} replicas are connected: no event is accepted",
                "connect replicas, or lower wait_replicas",
            )
        if count and not self._wait_replicas:
            return warned(
                f"{count} replicas receive events after they were accepted: a failover loses the last ones",
                "set wait_replicas of the transport to 1 or more",
            )
        return passed(f"{count} replicas, wait_replicas is {self._wait_replicas}")

    async def _destinations(self) -> CheckResult:
        wrong: list[str] = []
        for name, address in self._addresses.items():
            stream = address.fixed_stream
            if stream is None:
                continue
            kind = await self._type(stream)
            if kind not in ("stream", "none"):
                wrong.append(f"{name}: the key {stream!r} is a {kind}")
            elif kind == "none" and not address.create_stream:
                wrong.append(f"{name}: there is no stream {stream!r}")
        if wrong:
            return failed("; ".join(wrong), "correct the name of the stream, create it, or rename the key")
        if not self._addresses:
            return passed("no destination is configured: each event goes to the stream named after its type")
        return passed(f"events can be stored in the stream of {', '.join(self._addresses)}")

    async def _sizes(self) -> CheckResult:
        [limit] = await self._config("proto-max-bulk-len")
        if limit is None:
            return passed("the server does not say how large a value may be; the default is 512 MiB")
        if int(limit) < self._max_payload:
            return warned(
                f"proto-max-bulk-len is {limit}, below the largest payload of {self._max_payload} bytes: larger "
                "events are dead-lettered",
                f"`CONFIG SET proto-max-bulk-len {self._max_payload}`, or lower record.max_payload",
            )
        return passed(f"the server accepts payloads of {self._max_payload} bytes")

    async def _type(self, key: str) -> str:
        """Raises UnavailableError if this user lacks permission."""
        connection = await self._connector.ready()
        try:
            return bytes(await connection.call("TYPE", key)).decode()
        except TypeError:  # a status reply may be text
            return "none"
        except ErrorReply as refusal:
            raise UnavailableError(f"the type of key {key!r} cannot be read: {refusal}") from refusal

    async def _config(self, *names: str) -> list[str | None]:
        """The values; None where they are forbidden."""
        connection = await self._connector.ready()
        values: list[str | None] = []
        for name in names:
            try:
                found = await connection.call("CONFIG", "GET", name)
                values.append(found[1].decode() if found else None)
            except ErrorReply:
                values.append(None)
        return values

    async def _info(self, section: str) -> dict[str, str]:
        """Empty if it is forbidden."""
        connection = await self._connector.ready()
        try:
            text = bytes(await connection.call("INFO", section)).decode("utf-8", "replace")
        except ErrorReply:
            return {}
        return dict(line.split(":", 1) for line in text.splitlines() if ":" in line and not line.startswith("#"))


_NO_AOF = "appendonly is off: a restart of the server loses accepted events"
_AOF_FIX = "`CONFIG SET appendonly yes` and `CONFIG SET appendfsync always`, and the same in redis.conf"


def _unknown(what: str) -> CheckResult:
    return warned(f"{what} is unknown: this user may run neither CONFIG nor INFO", _FORBIDDEN)
