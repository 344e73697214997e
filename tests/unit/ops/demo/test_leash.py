"""Processes of the demo: one that ends at once says why."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from pillarbox.ops.demo.leash import Child, ChildFailed
from pillarbox.ops.demo.scene import Scene


class EndedAlready(subprocess.Popen[bytes]):
    """A process that has ended before its parent does anything else."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.wait()


def test_a_child_that_ends_before_it_was_told_anything_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subprocess, "Popen", EndedAlready)
    child = Child("no_such_module_of_the_demo", Scene(folder=tmp_path, name="x"), log=tmp_path / "child.log")
    try:
        with pytest.raises(ChildFailed, match=r"ended with 1: .*No module named no_such_module_of_the_demo"):
            child.check()
    finally:
        child.end()
