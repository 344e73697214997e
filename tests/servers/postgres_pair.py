"""A PostgreSQL primary and its streaming replica, which is promoted when the primary is killed."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial

import psycopg

from tests.servers import debian, processes
from tests.servers.postgres import PostgresServer
from tests.servers.server import Server
from tests.servers.switched_network import Host
from tests.servers.waiting import wait_until

_REPLICATION = {"wal_level": "replica", "max_wal_senders": "10", "hot_standby": "on"}
_ATTACHED = "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming' AND (sync_state = 'sync') = %s"


_WAITING = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"


class _HostServer(PostgresServer):
    """A server on a host of a network, whose clients and replica are on others."""

    def __init__(self, place: Host, *, settings: Mapping[str, str]) -> None:
        super().__init__(settings=dict(settings) | {"listen_addresses": "*"})
        self.host, self.namespace = place.address, place.namespace

    def _make_cluster(self) -> None:
        super()._make_cluster()
        with (self.data / "pg_hba.conf").open("a") as rules:
            rules.write("host all all 10.0.0.0/8 trust\nhost replication all 10.0.0.0/8 trust\n")


class PostgresPair(Server):
    """Two servers. `synchronous`: a commit is confirmed after the replica has it. `hosts`: those of a network."""

    def __init__(self, *, synchronous: bool, hosts: Sequence[Host] = ()) -> None:
        self._synchronous = synchronous
        names = {"synchronous_standby_names": "*"} if synchronous else {}
        make: Iterable[Callable[..., PostgresServer]] = [partial(_HostServer, host) for host in hosts] or [
            PostgresServer
        ] * 2
        self.primary, self.replica = self._pair = [server(settings=_REPLICATION) for server in make]
        self._settings: Mapping[str, str] = names
        self._peers = {server: host.peer_address for server, host in zip(self._pair, hosts, strict=False)}

    def url(self, database: str = "postgres") -> str:
        """Both hosts: a client uses the one that accepts writes."""
        hosts = ",".join(f"{server.host}:{server.port}" for server in self._pair)
        return f"postgresql://postgres@{hosts}/{database}"

    def start(self) -> None:
        """Returns when the replica streams."""
        self.primary.start()
        self._attach_replica()

    def fail_over(self) -> None:
        """Promote the replica of a killed primary; returns when it accepts writes."""
        self.primary, self.replica = self.replica, self.primary
        with psycopg.connect(self.primary.url(), autocommit=True) as connection:
            connection.execute("ALTER SYSTEM RESET synchronous_standby_names")
            connection.execute("SELECT pg_reload_conf()")
            connection.execute("SELECT pg_promote(true, 60)")

    def rebuild(self) -> None:
        """Make the former primary a replica of the new one; returns when it streams."""
        shutil.rmtree(self.replica.data)
        self._attach_replica()

    def freeze_replica(self) -> None:
        """Stop every process of the replica: it receives nothing more."""
        _signal(self.replica, signal.SIGSTOP)

    def written(self) -> int:
        """Return the bytes of WAL that the primary has written."""
        with psycopg.connect(self.primary.url(), autocommit=True) as connection:
            row = connection.execute("SELECT pg_current_wal_lsn() - '0/0'::pg_lsn").fetchone()
        return 0 if row is None else int(row[0])

    def thaw_replica(self) -> None:
        _signal(self.replica, signal.SIGCONT)

    def waiting_commits(self) -> int:
        """Return how many commits on the primary wait for the replica."""
        with psycopg.connect(self.primary.url(), autocommit=True) as connection:
            row = connection.execute(_WAITING).fetchone()
        return 0 if row is None else int(row[0])

    def close(self) -> None:
        for server in self._pair:
            _signal(server, signal.SIGCONT)
            server.close()

    def _attach_replica(self) -> None:
        program = str(os.path.join(os.path.dirname(debian.POSTGRES.path()), "pg_basebackup"))
        host = self._peers.get(self.primary, self.primary.host)
        source = f"host={host} port={self.primary.port} user=postgres application_name=replica"
        processes.run(
            [program, "-D", str(self.replica.data), "-d", source, "-R", "-X", "stream", "--checkpoint=fast"],
            folder=self.replica.folder,
            namespace=self.replica.namespace,
        )
        self.replica.start()
        if self._settings:
            with psycopg.connect(self.primary.url(), autocommit=True) as connection:
                connection.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
                connection.execute("SELECT pg_reload_conf()")
        wait_until(self._is_attached, bound=60, what="the replica streams")

    def _is_attached(self) -> bool:
        with psycopg.connect(self.primary.url(), autocommit=True) as connection:
            row = connection.execute(_ATTACHED, (self._synchronous,)).fetchone()
        return row is not None and row[0] == 1


def _signal(server: PostgresServer, number: signal.Signals) -> None:
    """Send a signal to every process of a server, if it runs."""
    with suppress(processes.ServerFailed):
        for pid in (server.pid, *processes.descendants(server.pid)):
            with suppress(ProcessLookupError):
                os.kill(pid, number)
