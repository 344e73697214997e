"""The ledgers of a drill."""

from __future__ import annotations

from pathlib import Path

from pillarbox.ops.drill.ledger import (
    ArrivalLog,
    CommittedCount,
    LineCount,
    TransactionLog,
    has_received,
    read_arrivals,
    read_writings,
)


def test_the_database_decides_about_a_transaction_whose_outcome_is_unknown(tmp_path: Path) -> None:
    log = TransactionLog(tmp_path, "writer-0")
    log.intend("1", [("k", "a")], [("k", "undone")])
    log.end("1", "committed", 1)
    log.intend("2", [("k", "b")], [])
    log.end("2", "unknown", 0)
    log.intend("3", [("k", "c")], [])
    log.end("3", "rolled back", 0)
    log.intend("4", [("k", "d")], [])  # the writer was killed
    log.close()
    writings = read_writings(tmp_path, in_database={"1", "4"})
    assert writings.ledger.committed == {"k": ["a", "d"]}
    assert writings.ledger.rolled_back == {"undone", "b", "c"}
    assert (writings.unknown, list(writings.committed_at)) == (2, ["a"])


def test_an_event_that_arrived_twice_is_not_two_events(tmp_path: Path) -> None:
    log, arrivals = TransactionLog(tmp_path, "writer-0"), ArrivalLog(tmp_path)
    log.intend("1", [("k", "a")], [])
    log.end("1", "committed", 1)
    log.intend("2", [("k", "b")], [])
    log.end("2", "unknown", 0)
    for event_id in ("a", "a", "phantom"):
        arrivals.add(event_id)
    assert has_received(tmp_path, read_writings(tmp_path, in_database={"1"}).ledger)
    both = read_writings(tmp_path, in_database={"1", "2"}).ledger
    assert not has_received(tmp_path, both)
    arrivals.add("b")
    assert has_received(tmp_path, both)


def test_counts_read_only_what_is_new(tmp_path: Path) -> None:
    log, count = TransactionLog(tmp_path, "writer-0"), CommittedCount(tmp_path)
    log.intend("1", [("k", "a"), ("k", "b")], [])
    log.end("1", "committed", 2)
    count.update()
    log.end("2", "rolled back", 0)
    count.update()
    assert (count.events, count.rolled_back) == (2, 1)
    log.close()


def test_arrivals_keep_the_order_of_arrival(tmp_path: Path) -> None:
    lines = LineCount(tmp_path / "received.txt")
    assert (lines.update(), read_arrivals(tmp_path)) == (0, [])
    arrivals = ArrivalLog(tmp_path)
    for event_id in ("b", "a", "b"):
        arrivals.add(event_id)
    arrivals.close()
    assert [arrival.event_id for arrival in read_arrivals(tmp_path)] == ["b", "a", "b"]
    assert lines.update() == 3
