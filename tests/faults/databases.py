"""What a stage needs of its database: queries, writers with savepoints, a witness, and a name for each relay."""

from __future__ import annotations

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

import psycopg
import pymysql

from tests.integration.record.mariadb_ways import connect_arguments

_FOLDER = Path(__file__).parent
_WAIT_FOR_LOCKS = """
CREATE FUNCTION fault_wait_for_locks() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('lock_timeout', '0', true);
  RETURN NULL;
END $$;
CREATE TRIGGER fault_wait_for_locks BEFORE DELETE OR UPDATE ON outbox_message
  FOR EACH STATEMENT EXECUTE FUNCTION fault_wait_for_locks();
"""
_WAIT_FOR_LOCKS_ON_MARIADB = """
CREATE TRIGGER fault_wait_for_locks BEFORE INSERT ON outbox_history
  FOR EACH ROW SET SESSION innodb_lock_wait_timeout = 3600
"""
"""A settlement writes the history before it locks messages."""


class Writer(ABC):
    """A connection of a writer."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection

    @abstractmethod
    def transaction(self, *, rolled_back: bool) -> AbstractContextManager[object]:
        """Commit at the end of the block, or roll back."""

    @abstractmethod
    def savepoint(self) -> AbstractContextManager[object]:
        """A savepoint inside a transaction, to which the block is rolled back."""


class Database(ABC):
    """One database. Its one connection is for queries: a wait polls a hundred times per second."""

    now: str
    """An expression: the current time."""
    on_lane = "USING (lane)"
    """Joins messages with their lanes."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._asking = Lock()
        self._connection = self._connect()
        self._install_witness()

    @abstractmethod
    def writer(self) -> AbstractContextManager[Writer]: ...

    @abstractmethod
    def named(self, url: str, relay: str) -> str:
        """The URL of the store, with the name under which the witness knows the relay."""

    @abstractmethod
    def relays_locked(self) -> AbstractContextManager[object]:
        """Let no relay renew its lease while the block is open."""

    def is_locked(self) -> bool:
        """Return whether a frozen relay keeps all others from writing."""
        return False

    def messages_locked(self) -> AbstractContextManager[object]:
        """Lock every pending message while the block is open. From now on settlements wait for such locks, however slow
        the machine is."""
        raise NotImplementedError(f"{type(self).__name__} locks no rows")

    def settlement_waits(self) -> bool:
        """Return whether the settlement of a relay waits for a lock."""
        raise NotImplementedError(f"{type(self).__name__} locks no rows")

    @abstractmethod
    def is_past(self, since: object, seconds: float) -> bool:
        """Return whether that many seconds have passed on the clock of the database."""

    @abstractmethod
    def query(self, statement: str, *parameters: object) -> Sequence[tuple[Any, ...]]: ...

    def close(self) -> None:
        self._connection.close()

    @abstractmethod
    def _connect(self) -> Any: ...

    @abstractmethod
    def _install_witness(self) -> None: ...


class PostgresWriter(Writer):
    def transaction(self, *, rolled_back: bool) -> AbstractContextManager[object]:
        found: AbstractContextManager[object] = self.connection.transaction(force_rollback=rolled_back)
        return found

    def savepoint(self) -> AbstractContextManager[object]:
        return self.transaction(rolled_back=True)


class PostgresDatabase(Database):
    now = "now()"

    @contextmanager
    def writer(self) -> Iterator[Writer]:
        with psycopg.connect(self.url) as connection:
            yield PostgresWriter(connection)

    def named(self, url: str, relay: str) -> str:
        return f"{url}?faults.relay={relay}"

    @contextmanager
    def relays_locked(self) -> Iterator[None]:
        with psycopg.connect(self.url) as other_session:
            other_session.execute("LOCK TABLE outbox_relay IN SHARE MODE")
            yield

    @contextmanager
    def messages_locked(self) -> Iterator[None]:
        with psycopg.connect(self.url) as other_session:
            other_session.execute(_WAIT_FOR_LOCKS)
            other_session.commit()
            other_session.execute("SELECT FROM outbox_message FOR UPDATE")
            yield

    def settlement_waits(self) -> bool:
        [(waiting,)] = self.query("""SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'
            AND application_name = 'pillarbox' AND datname = current_database()""")
        return bool(waiting)

    def is_past(self, since: object, seconds: float) -> bool:
        [(past,)] = self.query("SELECT now() > %s::timestamptz + %s * interval '1 second'", since, seconds)
        return bool(past)

    def query(self, statement: str, *parameters: object) -> Sequence[tuple[Any, ...]]:
        with self._asking:
            try:
                return list(self._connection.execute(statement, parameters).fetchall())
            except psycopg.OperationalError:
                if not self._connection.closed:
                    raise
                # The server crashed and runs again.
                self._connection = self._connect()
                return list(self._connection.execute(statement, parameters).fetchall())

    def _connect(self) -> Any:
        return psycopg.connect(self.url, autocommit=True)

    def _install_witness(self) -> None:
        self._connection.execute((_FOLDER / "witness.sql").read_bytes())


class MariaDBWriter(Writer):
    @contextmanager
    def transaction(self, *, rolled_back: bool) -> Iterator[None]:
        self.connection.begin()
        yield
        self.connection.rollback() if rolled_back else self.connection.commit()

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        with self.connection.cursor() as cursor:
            cursor.execute("SAVEPOINT undone")
            yield
            cursor.execute("ROLLBACK TO SAVEPOINT undone")


class MariaDBDatabase(Database):
    """Each relay is a user of its own: the witness sees the user of a session, and no setting of it."""

    now = "utc_timestamp(6)"

    def __init__(self, url: str) -> None:
        self._users: list[str] = []
        super().__init__(url)

    @contextmanager
    def writer(self) -> Iterator[Writer]:
        with closing(pymysql.connect(**connect_arguments(self.url))) as connection:
            yield MariaDBWriter(connection)

    def named(self, url: str, relay: str) -> str:
        database = url.rpartition("/")[2]
        self.query(f"CREATE USER `{relay}`")
        self._users.append(relay)
        self.query(f"GRANT ALL ON `{database}`.* TO `{relay}`")
        return url.replace("root@", f"{relay}@")

    @contextmanager
    def relays_locked(self) -> Iterator[None]:
        with self.writer() as other, other.connection.cursor() as cursor:
            cursor.execute("LOCK TABLES outbox_relay READ")  # row locks would not stop a relay whose row is deleted
            yield

    @contextmanager
    def messages_locked(self) -> Iterator[None]:
        self.query(_WAIT_FOR_LOCKS_ON_MARIADB)
        with self.writer() as other, other.transaction(rolled_back=True), other.connection.cursor() as cursor:
            cursor.execute("SELECT id FROM outbox_message FOR UPDATE")
            yield

    def settlement_waits(self) -> bool:
        # The list of transactions would be as old as the last call but one.
        [(waiting,)] = self.query("""SELECT variable_value FROM information_schema.global_status
            WHERE variable_name = 'INNODB_ROW_LOCK_CURRENT_WAITS'""")
        return int(waiting) > 0

    def is_past(self, since: object, seconds: float) -> bool:
        [(past,)] = self.query(f"SELECT {self.now} > %s + INTERVAL %s SECOND", since, seconds)
        return bool(past)

    def query(self, statement: str, *parameters: object) -> Sequence[tuple[Any, ...]]:
        with self._asking, self._connection.cursor() as cursor:
            cursor.execute(statement, parameters or None)
            return list(cursor.fetchall())

    def close(self) -> None:
        super().close()
        server = connect_arguments(self.url) | {"database": None}  # the database may be dropped already
        with closing(pymysql.connect(**server)) as connection, connection.cursor() as cursor:
            for user in self._users:
                cursor.execute(f"DROP USER `{user}`")

    def _connect(self) -> Any:
        return pymysql.connect(**connect_arguments(self.url), autocommit=True)

    def _install_witness(self) -> None:
        for statement in (_FOLDER / "witness_mariadb.sql").read_text().split(";\n"):
            if statement.strip():
                self.query(statement)


class SqliteWriter(Writer):
    @contextmanager
    def transaction(self, *, rolled_back: bool) -> Iterator[None]:
        self.connection.execute("BEGIN IMMEDIATE")
        yield
        self.connection.execute("ROLLBACK" if rolled_back else "COMMIT")

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        self.connection.execute("SAVEPOINT undone")
        yield
        self.connection.execute("ROLLBACK TO undone")


class SqliteDatabase(Database):
    """The witness calls a function that each relay defines on its connection; see program.py."""

    now = "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')"
    on_lane = "ON l.lane = 0"

    @contextmanager
    def writer(self) -> Iterator[Writer]:
        with closing(self._connect()) as connection:
            yield SqliteWriter(connection)

    def named(self, url: str, relay: str) -> str:
        return url

    def is_locked(self) -> bool:
        with closing(self._connect(wait=5)) as other:
            try:
                other.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                return True
            return False

    @contextmanager
    def relays_locked(self) -> Iterator[None]:
        """SQLite locks no single table: a heartbeat may report the loss before the settlement."""
        yield

    def is_past(self, since: object, seconds: float) -> bool:
        [(past,)] = self.query("SELECT julianday('now') > julianday(%s) + %s / 86400.0", since, seconds)
        return bool(past)

    def query(self, statement: str, *parameters: object) -> Sequence[tuple[Any, ...]]:
        with self._asking:
            return list(self._connection.execute(statement.replace("%s", "?"), parameters).fetchall())

    def _connect(self, *, wait: float = 60) -> Any:
        path = self.url.removeprefix("sqlite:///")
        return sqlite3.connect(path, timeout=wait, isolation_level=None, check_same_thread=False)

    def _install_witness(self) -> None:
        self._connection.executescript((_FOLDER / "witness_sqlite.sql").read_text())


def database_at(url: str) -> Database:
    of_scheme = {"mariadb": MariaDBDatabase, "sqlite": SqliteDatabase}
    return of_scheme.get(url.partition(":")[0], PostgresDatabase)(url)
