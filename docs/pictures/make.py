"""`python docs/pictures/make.py`: the picture of the demo in the README, from a real run."""

from __future__ import annotations

import asyncio
import io
import re
import tempfile
from pathlib import Path

from rich.console import Console

from pillarbox.ops.demo.report import table
from pillarbox.ops.demo.run import Outcome, Plan, Run
from pillarbox.ops.demo.scene import Scene
from pillarbox.ops.demo.view import WIDTH, render
from pillarbox.ops.demo.watching import Figures

SECONDS = 16
SHOWN_AT = 13.0
"""Seconds after the start: the relay was killed at the half, and its successor has caught up."""

_ELSEWHERE = re.compile(r"@font-face \{.*?\}\s*|<!--.*?-->\s*", re.DOTALL)


def main() -> None:
    seen: list[Figures] = []
    with tempfile.TemporaryDirectory() as folder:
        scene = Scene(folder=Path(folder), name="demo")
        outcome = asyncio.run(Run(scene, Plan(seconds=SECONDS, kill=True), seen.append).play())
    shown = next(figures for figures in seen if figures.elapsed >= SHOWN_AT)
    (Path(__file__).parent / "demo.svg").write_text(draw(scene, shown, outcome), encoding="utf-8")


def draw(scene: Scene, shown: Figures, outcome: Outcome) -> str:
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print("[dim]$[/] make demo ARGS=[green]'--seconds 16 --kill'[/]", highlight=False)
    console.print(render(scene, shown), highlight=False)
    console.print(table(outcome), highlight=False)
    # The viewer's own monospaced font: a picture must not fetch anything.
    return _ELSEWHERE.sub("", console.export_svg(title="pillarbox demo", unique_id="demo"))


if __name__ == "__main__":
    main()
