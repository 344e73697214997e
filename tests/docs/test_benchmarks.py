"""The page of benchmarks, the comparison in the README and the plots are what the generator makes of one run."""

import re
import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks.cells import QUICK
from benchmarks.harness import Harness
from benchmarks.peers import FOLDER, PEERS, call
from benchmarks.processes import WorkerFailed
from benchmarks.reporting import page, plots, tables, transports
from benchmarks.reporting.transports import Drained, Row, TransportRun
from benchmarks.results import Cell, Contender, Latency, Run, Sample
from tests.docs.pages import ROOT

REFERENCE = ROOT / "docs/reference"
STORED = Run.read(REFERENCE / "benchmarks.json")


def sample(seconds: float, *, python: float = 20.0) -> Sample:
    return Sample(events=10_000, seconds=seconds, python=python, postgres=15.0, rabbitmq=45.0, memory=42.4)


def small_run() -> Run:
    quorum = Cell(
        name="quorum",
        queue="quorum",
        raw=[40_000, 40_000, 20_000],
        contenders=[
            Contender(name="history off", samples=[sample(0.5), sample(1.0)], calls=73.4, statements=0.0123),
            Contender(name="history on", samples=[sample(2.0), sample(4.0)]),
        ],
    )
    peers = Cell(
        name="peers, quorum",
        queue="quorum",
        raw=[40_000, 40_000],
        contenders=[
            Contender(name="Pillarbox", samples=[sample(0.5)]),
            Contender(name="slow, tuned", samples=[sample(2.0)]),
            Contender(name="fast, tuned", samples=[sample(1.0)]),
            Contender(name="another", skipped="it could not\nbe installed"),
        ],
    )
    latency = Latency(
        rate=200, achieved=199.6, events=800, p50=2.0, p99=8.0, longest=20.0, floor_p50=1.6, floor_p99=4.0
    )
    machine = {"cores": 2, "python": "3.11.7", "postgres": 15, "rabbitmq": "3.10.8", "system": "Linux"}
    return Run(machine=machine, quick=False, started="2026-11-16 12:00 UTC", cells=[quorum, peers], latencies=[latency])


def test_the_page_is_made_of_the_stored_run() -> None:
    assert (REFERENCE / "benchmarks.md").read_text() == page.page(STORED, transports.stored())


def test_a_run_of_transports_is_stored_and_becomes_a_section_of_the_page(tmp_path: Path) -> None:
    rows = {
        "PostgreSQL": Row(drained=[Drained(20_000, 30, 20), Drained(40_000, 32, 22), Drained(30_000, 31, 21)]),
        "kafka": Row([100_000, 120_000, 110_000], [6, 6, 7], [Drained(15_000, 50, 25)] * 3),
    }
    run = TransportRun(
        machine={"cores": 2, "python": "3.11.7"}, started="2026-11-16 12:00 UTC", events=20_000, rounds=3, rows=rows
    )
    run.write(tmp_path / "transports.json")
    read = TransportRun.read(tmp_path / "transports.json")
    assert read == run
    shown = page.page(STORED, read)
    assert "Measured on 2026-11-16 (2 cores, Python 3.11.7): 20,000 events, the median of 3 rounds." in shown
    assert "| PostgreSQL, sends confirmed at once |  |  | 30,000 (20,000 to 40,000) | 31 | 21 |  |  |" in shown
    assert "| kafka | 110,000 | 6 | 15,000 (15,000 to 15,000) | 50 | 25 | 0.14 | 0.50 |" in shown
    assert "Not measured yet." in page.page(STORED, None)


def test_the_comparison_in_the_readme_is_made_of_the_stored_run() -> None:
    readme = (ROOT / "README.md").read_text()
    assert page.comparison(STORED) in readme
    assert readme == page.readme(STORED, readme)


def test_the_plots_are_made_of_the_stored_run() -> None:
    stored = {path.name: path.read_text() for path in (ROOT / "docs/pictures").glob("bench-*.svg")}
    assert stored == plots.of_run(STORED)


def test_a_row_shows_medians_spreads_and_what_each_part_cost() -> None:
    shown = tables.of_cell(small_run().cells[0], cores=2, compared_with="history off").splitlines()
    assert shown[2] == "| raw limit | 40,000 (20,000 to 40,000) | 1.00 |  |  |  |  |  |  |  |  |"
    rate, share, times = "15,000 (10,000 to 20,000)", "0.42 (0.33 to 0.50)", "1.00"
    assert shown[3] == f"| history off | {rate} | {share} | {times} | 25,000 | 20 | 15 | 45 | 42 | 73 | 0.012 |"
    assert shown[4].startswith("| history on | 3,750 (2,500 to 5,000) | 0.10 (0.08 to 0.12) | 0.25 | 25,000 |")


def test_a_contender_that_was_not_measured_says_why_on_one_line() -> None:
    shown = tables.of_cell(small_run().cells[1], cores=2).splitlines()
    assert shown[-1].startswith("| another | not measured: it could not be installed |")


def test_latency_is_shown_with_its_lower_bound() -> None:
    assert tables.of_latencies(small_run()).endswith("| 200 | 200 | 2.0 | 8.0 | 20.0 | 1.6 | 4.0 | 1.25 | 2.00 |")


def test_latency_of_several_rounds_has_its_spread() -> None:
    run = small_run()
    run.latencies.append(replace(run.latencies[0], p50=4.0))
    assert (
        "| 200 | 200 | 3.0 (2.0 to 4.0) | 8.0 | 20.0 | 1.6 | 4.0 | 1.88 (1.25 to 2.50) | 2.00 |"
        in tables.of_latencies(run)
    )


def test_cells_that_did_not_run_are_named_as_such() -> None:
    assert page.page(small_run(), None).count("Not part of this run.") == 8


def test_the_comparison_has_every_contender() -> None:
    shown = page.comparison(small_run()).splitlines()
    assert shown[5:9] == [
        "| Pillarbox | 20,000 |",
        "| slow, tuned | 5,000 |",
        "| fast, tuned | 10,000 |",
        "| another | not measured |",
    ]
    assert shown[-1] == "On a quorum queue Pillarbox is 2.00 times as fast as fast (tuned), the fastest peer."


def test_strict_order_is_shown_with_the_rate_its_round_trips_allow() -> None:
    cell = Cell(
        name="hot keys",
        queue="quorum",
        confirms={"1": [1000.0, 2000.0], "50": [30_000.0, 4000.0]},
        contenders=[
            Contender(name="20,000 keys", samples=[sample(1.0), sample(1.0)]),
            Contender(name="50 keys, strict", samples=[sample(2.0), sample(5.0)]),
            Contender(name="1 key, strict", samples=[sample(20.0), sample(10.0)]),
        ],
    )
    assert tables.of_confirms(cell) == (
        "The queue confirms 1,500 (1,000 to 2,000) messages a second with 1 in flight and "
        "17,000 (4,000 to 30,000) messages a second with 50 in flight. "
        "Of the rate that this allows, with keys at most that of 20,000 keys: "
        "1 key, strict: 0.50; 50 keys, strict: 0.50."
    )


def test_a_run_round_trips_through_its_file(tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    small_run().write(file)
    assert Run.read(file) == small_run()


def test_an_unknown_cell_is_an_error_that_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match="no cell is called speed; there are: quorum; classic; options; hot keys; "):
        Harness(QUICK, only=["quorum", "speed"])


def test_peers_are_pinned_without_any_address() -> None:
    pins = [line for peer in PEERS for line in (FOLDER / f"{peer.name}.txt").read_text().splitlines()]
    assert len(pins) > len(PEERS)
    assert [line for line in pins if not re.fullmatch(r"[\w.-]+==[\w.]+", line)] == []


def test_a_peer_that_cannot_be_set_up_says_why() -> None:
    with pytest.raises(WorkerFailed, match="txoutbox could not be set up: no package index"):
        call("txoutbox", sys.executable, "-c", "raise SystemExit('trying\\nno package index')")


def test_a_plot_is_svg_with_a_bar_for_each_contender_as_long_as_its_rate() -> None:
    plot = ElementTree.fromstring(plots.of_run(small_run())["bench-quorum.svg"])  # noqa: S314 - made here
    rects = plot.findall("{http://www.w3.org/2000/svg}rect")[1:]
    widths = [float(rect.attrib["width"]) for rect in rects]
    assert widths == pytest.approx([420, 157.5, 39.4])
