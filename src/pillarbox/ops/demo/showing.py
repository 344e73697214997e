"""Who watches: a terminal sees the live view, a pipe a line a second, a script nothing before the verdict."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live

from pillarbox.ops.demo.run import Show
from pillarbox.ops.demo.scene import Scene
from pillarbox.ops.demo.view import render
from pillarbox.ops.demo.watching import Figures

LINE_EVERY = 1.0
PLAIN_WIDTH = 100


def make_console() -> Console:
    """Standard output; a pipe has no width of its own."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=PLAIN_WIDTH)


@contextmanager
def live(scene: Scene, console: Console) -> Iterator[Show]:
    """The live view, redrawn at every look."""
    with Live(console=console, auto_refresh=False) as screen:
        yield lambda figures: screen.update(render(scene, figures), refresh=True)


@contextmanager
def lines(scene: Scene, console: Console) -> Iterator[Show]:
    """A line a second."""
    console.print(scene.title)
    told, window = 0.0, ""

    def show(figures: Figures) -> None:
        nonlocal told, window
        if figures.window != window:
            window = figures.window
            console.print(window, markup=False, soft_wrap=True)
        if figures.elapsed >= told:
            told = figures.elapsed + LINE_EVERY
            console.print(_line(figures), soft_wrap=True)

    yield show


@contextmanager
def nothing() -> Iterator[Show]:
    """Only the verdict counts."""
    yield lambda figures: None


def _line(figures: Figures) -> str:
    seen = figures.overview
    handled = ", ".join(f"{tally.receiver} {tally.handled.total:,}" for tally in figures.tallies)
    lag = f" for {seen.oldest:.1f} s" if seen.oldest is not None else ""
    killed = f"; {figures.kills} killed" if figures.kills else ""
    return (
        f"{figures.elapsed:6.1f} s  {figures.phase}: {figures.committed.total:,} committed, "
        f"{figures.rolled_back:,} rolled back; {handled}; {seen.backlog:,} pending{lag}; {seen.dead:,} dead{killed}"
    )
