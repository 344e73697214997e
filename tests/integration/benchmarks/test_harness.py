"""A run takes turns, measures the raw limit around each round, and says why a contender has no samples."""

from dataclasses import replace

from benchmarks.cells import QUICK
from benchmarks.draining import Draining, Servers
from benchmarks.harness import Harness, take_turn
from benchmarks.results import Contender

TINY = replace(QUICK, repeats=2, events=40, raw=1000, relays=(1,), latency={})


def test_the_raw_limit_is_measured_before_and_after_each_round(servers: Servers) -> None:
    reported: list[str] = []
    harness = Harness(TINY, only=["relays"])
    run = harness.run(servers, reported.append)
    [cell] = run.cells
    assert reported == ["relays, 1 of 2: 1", "relays, 2 of 2: 1"]
    assert harness.turns == len(reported)
    assert (len(cell["1"].samples), len(cell.raw)) == (2, 3)
    assert run.cores > 0


def test_a_contender_that_fails_has_an_error_and_no_samples(servers: Servers) -> None:
    contender = Contender(name="broken")
    take_turn(contender, servers, Draining(events=40), "classic")
    take_turn(contender, servers, Draining(events=40, module="benchmarks.workers.nothing"), "classic")
    assert contender.samples == []
    assert "No module named benchmarks.workers.nothing" in contender.skipped
