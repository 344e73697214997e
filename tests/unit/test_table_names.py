"""Prefix and schema are given once: the store, the outbox and the inbox take the same value."""

import sqlite3
from contextlib import aclosing, closing
from pathlib import Path
from typing import Any

import pytest

from pillarbox import ConfigurationError, Event, Inbox, Outbox, TableNames, open_store


@pytest.mark.parametrize(
    ("setting", "value", "reason"),
    [
        ("prefix", "outbox-", "not a plain identifier"),
        ("prefix", 'x"; DROP TABLE y; --', "not a plain identifier"),
        ("prefix", "x" * 64, "too long"),
        ("schema", "", "not a plain identifier"),
        ("schema", None, "write text"),
        ("schema", "a.b", "not a plain identifier"),
    ],
)
def test_an_invalid_table_name_is_rejected(setting: str, value: Any, reason: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"^TableNames\.{setting}.*{reason}"):
        TableNames(**{setting: value})


async def test_store_outbox_and_inbox_share_one_value(tmp_path: Path) -> None:
    tables, file = TableNames(prefix="shop_"), tmp_path / "shop.db"
    async with aclosing(open_store(f"sqlite:///{file}", tables=tables)) as store:
        await store.schema.apply()
        with closing(sqlite3.connect(file)) as connection:
            with connection:
                Outbox(tables=tables).record(connection, Event("order.placed", {}, event_id="e1"))
                assert Inbox(tables=tables).admit(connection, "billing", "e0")
            assert connection.execute("SELECT event_id FROM shop_message").fetchall() == [("e1",)]
            assert connection.execute("SELECT event_id FROM shop_inbox").fetchall() == [("e0",)]
