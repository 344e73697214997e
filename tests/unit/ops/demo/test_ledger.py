"""The demo's ledger: what was said stays said, in order, and half a line is not a line."""

from __future__ import annotations

from pathlib import Path

import pytest

from pillarbox.ops.demo.ledger import Entry, Ledger, LedgerReader


def test_a_reader_sees_each_line_once_in_order(tmp_path: Path) -> None:
    path = tmp_path / "ledger.txt"
    reader = LedgerReader(path)
    assert reader.more() == []
    first, second = Ledger(path), Ledger(path)
    first.note(Entry("mailer", "failed", "1", "a"))
    second.note(Entry("search", "handled", "1", "a"))
    assert reader.more() == [Entry("mailer", "failed", "1", "a"), Entry("search", "handled", "1", "a")]
    first.note(Entry("mailer", "handled", "1", "a"))
    assert reader.more() == [Entry("mailer", "handled", "1", "a")]
    assert reader.more() == []
    first.close()
    second.close()


def test_half_a_line_comes_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "ledger.txt"
    reader = LedgerReader(path)
    path.write_text("mailer handled 1 a\nmailer hand")
    assert [entry.event_id for entry in reader.more()] == ["a"]
    with path.open("a") as file:
        file.write("led 1 b\n")
    assert [entry.event_id for entry in reader.more()] == ["b"]


def test_a_line_that_nobody_wrote_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "ledger.txt"
    path.write_text("mailer dreamt 1 a\n")
    with pytest.raises(ValueError, match="nobody wrote"):
        LedgerReader(path).more()
