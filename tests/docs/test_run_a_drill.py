"""The commands and the fields of `how-to/run-a-drill.md`."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

from pillarbox.ops.drill.schedule import KINDS
from tests.docs.pages import ROOT, blocks
from tests.integration.cli.running import pillarbox

PAGE = ROOT / "docs/how-to/run-a-drill.md"


def test_the_first_command_passes_without_any_settings(tmp_path: Path) -> None:
    command = blocks(PAGE, "console")[0].removeprefix("$ ").strip()
    done = pillarbox(*shlex.split(command)[1:], cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads((tmp_path / "drill.json").read_text())
    assert report["faults"]["kill"]["effective"] > 0
    section = PAGE.read_text().partition("## The report")[2].partition("| exit code")[0]
    fields = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", section, re.MULTILINE)
    named = {name for cell in fields for name in re.findall(r"`(\w+)`", cell)}
    assert len(named) > 10
    assert named <= report.keys()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["drill.html", "drill.json"]


def test_every_fault_is_described() -> None:
    text = PAGE.read_text()
    assert [kind for kind in KINDS if f"`{kind}`" not in text] == []
