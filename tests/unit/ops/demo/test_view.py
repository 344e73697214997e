"""What the live view says."""

from __future__ import annotations

import io
from pathlib import Path

from rich.console import Console

from pillarbox.admin.overview import LaneView, Overview, RelayView
from pillarbox.ops.demo.scene import Scene
from pillarbox.ops.demo.view import render, sparkline
from pillarbox.ops.demo.watching import Figures, Meter, Pace, Tally

PACE = Pace(total=1234, rate=199.6, lately=(0, 100, 200))


def figures(*, owner: str | None) -> Figures:
    return Figures(
        phase="writing",
        elapsed=7.1,
        done=0.7,
        committed=PACE,
        rolled_back=88,
        tallies=(Tally(receiver="mailer", handled=PACE, failed=61, refused=2),),
        overview=Overview(
            backlog=35,
            oldest=0.4,
            exact=True,
            dead=2,
            lanes=[LaneView(number, owner, 3, 0) for number in range(64)],
            relays=[RelayView("alive", "demo", "here", 2.5, {}), RelayView("dead", "demo", "here", -1.0, {})],
        ),
        kills=1,
        happenings=((5.0, "relay (pid 7) killed with SIGKILL"),),
        window="console: http://127.0.0.1:8980/",
    )


def shown(seen: Figures) -> str:
    console = Console(file=io.StringIO(), width=100, record=True)
    console.print(render(Scene(folder=Path("x"), name="x"), seen))
    return console.export_text()


def test_it_tells_rates_lag_retries_dead_letters_and_what_happened() -> None:
    text = shown(figures(owner="alive"))
    for said in ("1,234", "200", "88 rolled back", "61", "35 pending, the oldest for 0.4 s; 2 dead letters", "SIGKILL"):
        assert said in text


def test_lanes_of_a_dead_relay_do_not_count_as_worked() -> None:
    assert "64 of 64 owned by a running relay, epoch 3" in shown(figures(owner="alive"))
    assert "0 of 64 owned by a running relay" in shown(figures(owner="dead"))
    assert "0 of 64 owned by a running relay" in shown(figures(owner=None))


def test_the_highest_bar_is_full() -> None:
    assert sparkline([0, 50, 100]) == "▁▅█"
    assert sparkline([0, 0]) == "▁▁"
    assert sparkline([]) == ""


def test_a_rate_is_that_of_the_last_moments() -> None:
    meter = Meter()
    paces = [meter.read(float(second), 0) for second in range(10)]
    assert (paces[-1].rate, paces[-1].total) == (0.0, 0)
    assert meter.read(10.0, 300).rate == 300.0
    assert meter.read(10.1, 300).lately[-1] == 300.0


def test_where_the_console_is_stays_in_sight() -> None:
    assert "console: http://127.0.0.1:8980/" in shown(figures(owner="alive"))
