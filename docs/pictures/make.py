"""`python docs/pictures/make.py`: draw docs/pictures/demo.svg from a real run of the demo."""

from __future__ import annotations

import asyncio
import io
import re
import tempfile
from pathlib import Path

from rich.console import Console

from pillarbox.ops.demo.environment import DemoEnvironment
from pillarbox.ops.demo.report import table
from pillarbox.ops.demo.run import DemoOptions, DemoResult, DemoRun
from pillarbox.ops.demo.sampling import Snapshot
from pillarbox.ops.demo.view import WIDTH, render

SECONDS = 16
SHOWN_AT = 13.0
"""Seconds after the start: the relay was killed half-way, and its successor has delivered the backlog."""

_EXTERNAL = re.compile(r"@font-face \{.*?\}\s*|<!--.*?-->\s*", re.DOTALL)


def main() -> None:
    seen: list[Snapshot] = []
    with tempfile.TemporaryDirectory() as folder:
        environment = DemoEnvironment(folder=Path(folder), name="demo")
        result = asyncio.run(DemoRun(environment, DemoOptions(seconds=SECONDS, kill=True), seen.append).run())
    shown = next(snapshot for snapshot in seen if snapshot.elapsed >= SHOWN_AT)
    (Path(__file__).parent / "demo.svg").write_text(draw(environment, shown, result), encoding="utf-8")


def draw(environment: DemoEnvironment, shown: Snapshot, result: DemoResult) -> str:
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print("[dim]$[/] make demo ARGS=[green]'--seconds 16 --kill'[/]", highlight=False)
    console.print(render(environment, shown), highlight=False)
    console.print(table(result), highlight=False)
    # Without the web font, so that the picture loads nothing; the viewer uses its own monospaced font.
    return _EXTERNAL.sub("", console.export_svg(title="pillarbox demo", unique_id="demo"))


if __name__ == "__main__":
    main()
