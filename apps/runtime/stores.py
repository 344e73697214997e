"""The stores that the applications run on."""

from __future__ import annotations

from pillarbox.stores.mariadb import MariaDBStore
from pillarbox.stores.postgres import PostgresStore
from pillarbox.stores.sqlite import SqliteStore

Store = PostgresStore | MariaDBStore | SqliteStore
