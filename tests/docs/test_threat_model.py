"""Every test that the threat model names exists, and every threat has one."""

from __future__ import annotations

import re

from tests.docs.nodes import NODE, exists
from tests.docs.pages import ROOT

PAGE = ROOT / "docs/explanation/threat-model.md"


def test_every_threat_has_a_test_that_exists() -> None:
    section = PAGE.read_text(encoding="utf-8").partition("## Threats and protections")[2].partition("## Not covered")[0]
    rows = [line.split(" | ") for line in section.splitlines() if line.startswith("| ") and "---" not in line][1:]
    assert len(rows) > 10
    for row in rows:
        named = re.findall(r"`(tests/[^`]+)`", row[-1])
        assert named, row[0]
        for test in named:
            assert exists(test) if NODE.fullmatch(f"`{test}`") else (ROOT / test).exists(), test
