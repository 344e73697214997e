"""The live view of the demo."""

from __future__ import annotations

import io
from pathlib import Path

from rich.console import Console

from pillarbox.admin.overview import LaneView, Overview, RelayView
from pillarbox.ops.demo.environment import DemoEnvironment
from pillarbox.ops.demo.sampling import RateMeter, ReceiverStatistics, Snapshot, Throughput
from pillarbox.ops.demo.view import render, sparkline

THROUGHPUT = Throughput(total=1234, rate=199.6, history=(0, 100, 200))


def snapshot(*, owner: str | None) -> Snapshot:
    return Snapshot(
        phase="writing",
        elapsed=7.1,
        progress=0.7,
        committed=THROUGHPUT,
        rolled_back=88,
        receivers=(ReceiverStatistics(receiver="mailer", handled=THROUGHPUT, failed=61, rejected=2),),
        overview=Overview(
            backlog=35,
            oldest=0.4,
            exact=True,
            dead=2,
            lanes=[LaneView(number, owner, 3, 0) for number in range(64)],
            relays=[RelayView("alive", "demo", "here", 2.5, {}), RelayView("dead", "demo", "here", -1.0, {})],
        ),
        kills=1,
        activity=((5.0, "relay (pid 7) killed with SIGKILL"),),
        console="console: http://127.0.0.1:8980/",
    )


def shown(seen: Snapshot) -> str:
    console = Console(file=io.StringIO(), width=100, record=True)
    console.print(render(DemoEnvironment(folder=Path("x"), name="x"), seen))
    return console.export_text()


def test_it_shows_rates_lag_retries_dead_letters_and_activity() -> None:
    text = shown(snapshot(owner="alive"))
    for text_part in ("1,234", "200", "88 rolled back", "61", "35 pending, oldest 0.4 s; 2 dead letters", "SIGKILL"):
        assert text_part in text


def test_lanes_of_a_stopped_relay_are_not_counted_as_owned() -> None:
    assert "64 of 64 owned by a running relay, epoch 3" in shown(snapshot(owner="alive"))
    assert "0 of 64 owned by a running relay" in shown(snapshot(owner="dead"))
    assert "0 of 64 owned by a running relay" in shown(snapshot(owner=None))


def test_the_highest_bar_is_full() -> None:
    assert sparkline([0, 50, 100]) == "▁▅█"
    assert sparkline([0, 0]) == "▁▁"
    assert sparkline([]) == ""


def test_a_rate_covers_the_last_second() -> None:
    meter = RateMeter()
    throughputs = [meter.read(float(second), 0) for second in range(10)]
    assert (throughputs[-1].rate, throughputs[-1].total) == (0.0, 0)
    assert meter.read(10.0, 300).rate == 300.0
    assert meter.read(10.1, 300).history[-1] == 300.0


def test_it_shows_the_address_of_the_console() -> None:
    assert "console: http://127.0.0.1:8980/" in shown(snapshot(owner="alive"))
