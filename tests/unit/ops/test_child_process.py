"""Child processes of the demo and of the drill."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from pillarbox.core.errors import CommandError
from pillarbox.ops.child_process import ChildProcess


class EndedAlready(subprocess.Popen[bytes]):
    """A process that has ended when the constructor returns."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.wait()


def test_a_child_that_ends_at_once_reports_its_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "Popen", EndedAlready)
    child = ChildProcess("no_such_module_of_the_demo", "{}", log=tmp_path / "child.log")
    try:
        with pytest.raises(CommandError, match=r"ended with 1: .*No module named no_such_module_of_the_demo"):
            child.check()
    finally:
        child.close()
