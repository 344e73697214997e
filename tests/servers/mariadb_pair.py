"""A MariaDB primary and its replica, which is promoted when the primary is killed.

Semi-synchronous replication has no timeout here: after one, a primary would go on alone. A transaction is visible to
others after the replica has it (AFTER_SYNC).
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import count

from tests.servers import processes
from tests.servers.mariadb import MariaDBServer
from tests.servers.server import Server
from tests.servers.switched_network import Host
from tests.servers.waiting import wait_until

_WITHOUT_TIMEOUT = str(2**63 - 1)
_REPLICATION = {"log-bin": "binlog", "log-slave-updates": "1", "gtid-strict-mode": "1", "slave-net-timeout": "10"}
_SEMI_SYNCHRONOUS = {
    "rpl-semi-sync-master-wait-point": "AFTER_SYNC",
    "rpl-semi-sync-master-timeout": _WITHOUT_TIMEOUT,
    "rpl-semi-sync-slave-enabled": "1",
}
_FOLLOW = (
    "CHANGE MASTER TO master_host='{host}', master_port={port}, master_user='root', master_use_gtid=slave_pos,"
    " master_connect_retry=1"
)
_STATUS = "SELECT variable_value FROM information_schema.global_status WHERE variable_name = '{}'"
_APPLIED = (
    "SELECT count(*) FROM information_schema.processlist"
    " WHERE user = 'system user' AND state LIKE 'Slave has read all relay log%'"
)
_FROM_ANYWHERE = """\
SET sql_log_bin = 0;
CREATE USER IF NOT EXISTS root@'%';
GRANT ALL ON *.* TO root@'%';
"""
_BOUND = 90


class _HostServer(MariaDBServer):
    """A server on a host of a network, whose clients and replica are on others."""

    def __init__(self, place: Host, *, settings: dict[str, str]) -> None:
        super().__init__(settings=settings | {"bind-address": "0.0.0.0"})  # noqa: S104 - a namespace of its own
        self.host, self.namespace = place.address, place.namespace
        script = self.folder / "init.sql"
        script.write_text(_FROM_ANYWHERE)
        processes.hand_over(script)
        self._settings["init-file"] = str(script)


class MariaDBPair(Server):
    """Two servers. `synchronous`: a commit is confirmed after the replica has it. `hosts`: those of a network."""

    def __init__(self, *, synchronous: bool, hosts: Sequence[Host] = ()) -> None:
        self._synchronous = synchronous
        settings = _REPLICATION | (_SEMI_SYNCHRONOUS if synchronous else {})
        make: Iterable[Callable[..., MariaDBServer]] = [partial(_HostServer, host) for host in hosts] or [
            MariaDBServer
        ] * 2
        self.primary, self.replica = self._pair = [server(settings=settings) for server in make]
        self._ids = count(1)
        self._peers = {server: host.peer_address for server, host in zip(self._pair, hosts, strict=False)}

    def start(self) -> None:
        """Returns when the replica follows."""
        self._start(self.primary)
        self._attach_replica()

    def fail_over(self) -> None:
        """Promote the replica of a killed primary; returns when it accepts writes."""
        self.primary, self.replica = self.replica, self.primary
        self.primary.execute("STOP SLAVE IO_THREAD")
        wait_until(
            lambda: self.primary.execute(_APPLIED) == [(1,)], bound=_BOUND, what="the replica applies what it received"
        )
        self.primary.execute("STOP SLAVE")
        self.primary.execute("RESET SLAVE ALL")

    def rebuild(self) -> None:
        """Make the former primary a replica of the new one, whose log begins with the first event."""
        shutil.rmtree(self.replica.data)
        self._attach_replica()

    def freeze_replica(self) -> None:
        """Let the replica receive nothing more. A process that is stopped would receive it later, from its socket."""
        self.replica.execute("STOP SLAVE IO_THREAD")

    def thaw_replica(self) -> None:
        self.replica.execute("START SLAVE IO_THREAD")

    def written(self) -> int:
        """Return the bytes that the primary has written to its log."""
        return sum(int(str(row[1])) for row in self.primary.execute("SHOW BINARY LOGS"))

    def waiting_commits(self) -> int:
        """Return how many commits on the primary wait for the replica."""
        return self._number("RPL_SEMI_SYNC_MASTER_WAIT_SESSIONS")

    def close(self) -> None:
        for server in self._pair:
            server.close()

    def _start(self, server: MariaDBServer) -> None:
        """Start a new server. A replica skips events that have its own id, as those of its former life have."""
        server._settings["server-id"] = str(next(self._ids))
        server.start()

    def _attach_replica(self) -> None:
        self._start(self.replica)
        self.replica.execute(
            _FOLLOW.format(host=self._peers.get(self.primary, self.primary.host), port=self.primary.port)
        )
        self.replica.execute("START SLAVE")
        if self._synchronous:
            self.primary.execute("SET GLOBAL rpl_semi_sync_master_enabled = 1")
            wait_until(
                lambda: self._number("RPL_SEMI_SYNC_MASTER_CLIENTS") == 1, bound=_BOUND, what="the replica is attached"
            )
        [(reached,)] = self.primary.execute("SELECT @@gtid_binlog_pos")
        wait = f"SELECT master_gtid_wait('{reached}', 1)"
        wait_until(
            lambda: not reached or self.replica.execute(wait) == [(0,)],
            bound=_BOUND,
            what="the replica has what the primary had",
        )

    def _number(self, status: str) -> int:
        return int(str(self.primary.execute(_STATUS.format(status))[0][0]))
