"""The demo's ledger: entries are read once, in order, and only when they are complete."""

from __future__ import annotations

from pathlib import Path

import pytest

from pillarbox.ops.demo.ledger import DemoLedgerEntry, LedgerReader, LedgerWriter


def test_a_reader_returns_each_entry_once_in_order(tmp_path: Path) -> None:
    path = tmp_path / "ledger.txt"
    reader = LedgerReader(path)
    assert reader.read_new() == []
    first, second = LedgerWriter(path), LedgerWriter(path)
    first.append(DemoLedgerEntry("mailer", "failed", "1", "a"))
    second.append(DemoLedgerEntry("search", "handled", "1", "a"))
    assert reader.read_new() == [
        DemoLedgerEntry("mailer", "failed", "1", "a"),
        DemoLedgerEntry("search", "handled", "1", "a"),
    ]
    first.append(DemoLedgerEntry("mailer", "handled", "1", "a"))
    assert reader.read_new() == [DemoLedgerEntry("mailer", "handled", "1", "a")]
    assert reader.read_new() == []
    first.close()
    second.close()


def test_an_incomplete_line_is_read_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "ledger.txt"
    reader = LedgerReader(path)
    path.write_text("mailer handled 1 a\nmailer hand")
    assert [entry.event_id for entry in reader.read_new()] == ["a"]
    with path.open("a") as file:
        file.write("led 1 b\n")
    assert [entry.event_id for entry in reader.read_new()] == ["b"]


def test_an_invalid_line_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "ledger.txt"
    path.write_text("mailer unknown 1 a\n")
    with pytest.raises(ValueError, match="invalid line"):
        LedgerReader(path).read_new()
