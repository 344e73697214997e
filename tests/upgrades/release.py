"""The release of BASELINE, built from its commit and installed in an environment of its own."""

import subprocess
import sys
import sysconfig
from pathlib import Path

from tests.upgrades.baseline import ROOT, read_baseline


class BaselineRelease:
    """Its wheel in a throw-away environment, which borrows the third-party packages of the development environment."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._python = folder / "venv" / "bin" / "python"

    def install(self) -> None:
        """Build the wheel of BASELINE's commit and install it."""
        source, wheels = self._folder / "source", self._folder / "wheels"
        source.mkdir(parents=True)
        archive = [
            "git",
            "-C",
            str(ROOT),
            "archive",
            read_baseline().commit,
            "src",
            "pyproject.toml",
            "README.md",
            "LICENSE",
            "hatch_build.py",
        ]
        packed = subprocess.run(archive, check=True, capture_output=True).stdout
        subprocess.run(["tar", "-x", "-C", str(source)], input=packed, check=True)
        _python("-m", "build", "--wheel", "--no-isolation", "--outdir", str(wheels), str(source))
        _python("-m", "venv", "--without-pip", str(self._folder / "venv"))
        [wheel] = wheels.glob("*.whl")
        pip = ("-m", "pip", "--python", str(self._python), "install", "--quiet", "--no-input", "--no-deps")
        _python(*pip, "--disable-pip-version-check", "--no-index", str(wheel))
        # A folder in a path file comes after the wheel, and its own path files are not read: not this tree's package.
        [site] = (self._folder / "venv" / "lib").glob("python*/site-packages")
        (site / "development.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")

    @property
    def python(self) -> str:
        """The interpreter of its environment."""
        return str(self._python)

    def command(self, *arguments: str) -> list[str]:
        """A command line of its `pillarbox`."""
        return [self.python, "-m", "pillarbox", *arguments]


def _python(*arguments: str) -> None:
    ran = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, f"{arguments}\n{ran.stdout}\n{ran.stderr}"
