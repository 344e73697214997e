"""A relay that was suspended for longer than its stall limit, as a paused machine is, continues."""

import signal
import sqlite3
from contextlib import closing
from pathlib import Path

from pillarbox import Event, Outbox
from tests.integration.cli.running import fresh_pillarbox
from tests.integration.telemetry.processes import Pages, exporter, relay
from tests.servers.waiting import wait_until

SETTINGS = {
    "PILLARBOX_TRANSPORT": "stdout://",
    "PILLARBOX_RELAY__LEASE": "4s",
    "PILLARBOX_RELAY__SEND_TIMEOUT": "1s",
    "PILLARBOX_RELAY__HEARTBEAT_INTERVAL": "200ms",
    # Shorter than the lease, and many heartbeats: a busy machine delays those of the relay and its rounds alike.
    "PILLARBOX_RELAY__STALL_LIMIT": "3s",
}


def stopped_outside_a_write(one: Pages, folder: Path) -> bool:
    """Stop it; if it keeps the file locked, let it continue."""
    one.signal(signal.SIGSTOP)
    wait_until(lambda: one.state() == "T", bound=60, what="the relay is stopped")
    with closing(sqlite3.connect(folder / "pillarbox.db", timeout=0, isolation_level=None)) as connection:
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            one.signal(signal.SIGCONT)
            return False
    return True


def test_a_relay_continues_after_it_was_suspended(tmp_path: Path) -> None:
    assert fresh_pillarbox("schema", "apply", cwd=tmp_path).returncode == 0
    with exporter(tmp_path) as store, relay(tmp_path, **SETTINGS) as suspended:
        store.until("outbox_relays", 1.0, outbox="pillarbox")
        suspended.signal(signal.SIGSTOP)
        # Its lease is longer than its stall limit.
        store.until("outbox_relays", 0.0, outbox="pillarbox")
        with closing(sqlite3.connect(tmp_path / "pillarbox.db")) as connection, connection:
            Outbox().record(connection, Event("order.placed", {}))
        suspended.signal(signal.SIGCONT)
        store.until("outbox_backlog", 0.0, outbox="pillarbox")
        assert suspended.stop() == 0, suspended.log_text()
