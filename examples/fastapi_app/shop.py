"""The tables and transactions of the shop. The web side contains no SQL."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from pillarbox import Event, Outbox

LIMIT = 1000

TABLES = """
CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, customer TEXT NOT NULL, total INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS receipt (order_id INTEGER PRIMARY KEY REFERENCES orders, text TEXT NOT NULL);
"""


@dataclass(frozen=True, slots=True)
class Order:
    """An order, with a receipt after the handler has run."""

    id: int
    customer: str
    total: int
    receipt: str | None


class Declined(Exception):
    """The order exceeds the credit limit of the customer."""


class Shop:
    """Every method is one transaction."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._outbox = Outbox()

    def make_tables(self) -> None:
        with closing(sqlite3.connect(self._path)) as connection:
            connection.executescript(TABLES)

    def place(self, customer: str, total: int) -> int:
        """Insert the order and its event, or neither. Raises Declined."""
        with closing(sqlite3.connect(self._path)) as connection, connection:
            number = connection.execute(
                "INSERT INTO orders (customer, total) VALUES (?, ?) RETURNING id", (customer, total)
            ).fetchone()[0]
            payload = {"id": number, "customer": customer, "total": total}
            event = Event("order.placed", payload, aggregate_type="ORDER", aggregate_id=str(number))
            self._outbox.record(connection, event)
            if total > LIMIT:
                raise Declined(customer)
        return int(number)

    def write_receipt(self, number: int, text: str) -> None:
        """Write the receipt of an order once, because a handler may be called again."""
        with closing(sqlite3.connect(self._path)) as connection, connection:
            connection.execute("INSERT OR IGNORE INTO receipt (order_id, text) VALUES (?, ?)", (number, text))

    def find(self, number: int) -> Order | None:
        with closing(sqlite3.connect(self._path)) as connection:
            row = connection.execute(
                "SELECT id, customer, total, text FROM orders LEFT JOIN receipt ON order_id = id WHERE id = ?",
                (number,),
            ).fetchone()
        return None if row is None else Order(*row)
