"""Builds the image with buildah: on a base from debootstrap, without an image registry and without an engine.

buildah runs with chroot isolation and the vfs driver, which need no kernel modules: a process of the image shares the
network and the process list of this machine, and its root file system is the image's.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.servers import debian

ROOT = Path(__file__).resolve().parents[2]
BUILDAH = debian.Binary(name="buildah", package="buildah")
DEBOOTSTRAP = debian.Binary(name="debootstrap", package="debootstrap", elsewhere="/usr/sbin:")
BASE_FILES = "BASE_FILES"
"""The variable with a folder for the files of the base, kept for the next run; by default they are made each time."""
_PYTHON = "python3,python3-venv,ca-certificates"
"""What the image needs of its base."""


class ImageBuild:
    """One build with its own storage, which nothing else on this machine sees."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._storage = ("--root", str(folder / "storage"), "--runroot", str(folder / "run"), "--storage-driver", "vfs")

    def buildah(self, command: str, *arguments: str) -> str:
        """Run a command of buildah and return its output."""
        return _run([BUILDAH.path(), *self._storage, command, *arguments], folder=self.folder).strip()

    def make_base(self) -> str:
        """An image of Debian with Python, made from its packages."""
        files = Path(os.environ.get(BASE_FILES) or self.folder / "debian")
        if not files.exists():
            options = ("--variant=minbase", f"--include={_PYTHON}")
            _run([DEBOOTSTRAP.path(), *options, _release(), str(files)], folder=self.folder)
        container = self.buildah("from", "scratch")
        self.buildah("copy", "--quiet", container, str(files), "/")
        self.buildah("commit", "--quiet", "--rm", container, "debian-python")
        return "localhost/debian-python"

    def make_image(self, base: str) -> str:
        """The image of `deploy/image/Dockerfile`, whose packages this machine's pip downloads."""
        context, wheels = self.folder / "context", self.folder / "wheels"
        for name in ("requirements/run.txt", "deploy/image/Dockerfile", "deploy/image/probe.py", ".dockerignore"):
            (context / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, context / name)
        python = (sys.executable, "-m")
        _run([*python, "build", "--wheel", "--no-isolation", "--outdir", str(context / "dist"), str(ROOT)], folder=ROOT)
        download = ("pip", "download", "--quiet", "--require-hashes", "--only-binary", ":all:")
        _run([*python, *download, "-r", str(ROOT / "requirements/run.txt"), "-d", str(wheels)], folder=ROOT)
        given = {"BASE": base, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "/wheels"}
        arguments = [part for name, value in given.items() for part in ("--build-arg", f"{name}={value}")]
        options = ("--quiet", "--isolation", "chroot", "--format", "docker", "--volume", f"{wheels}:/wheels:ro")
        file = ("--file", str(context / "deploy/image/Dockerfile"), "--tag", "pillarbox")
        self.buildah("bud", *options, *arguments, *file, str(context))
        return "localhost/pillarbox"

    def configuration(self, image: str) -> dict[str, Any]:
        """What an engine reads from the image."""
        found: dict[str, Any] = json.loads(self.buildah("inspect", "--type", "image", image))
        configuration: dict[str, Any] = found["Docker"]["config"]
        return configuration

    def command(self, container: str, environment: Mapping[str, str], *command: str) -> list[str]:
        """The command line that runs a command of the image as its user, with the image's variables."""
        variables = [part for name, value in environment.items() for part in ("--env", f"{name}={value}")]
        return [
            *(BUILDAH.path(), *self._storage, "run", "--isolation", "chroot", *variables, container, "--"),
            *command,
        ]


def _release() -> str:
    for line in Path("/etc/os-release").read_text().splitlines():
        name, _, value = line.partition("=")
        if name == "VERSION_CODENAME":
            return value.strip('"')
    return "stable"


def _run(command: Sequence[str], *, folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, env=_environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)} failed:\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def _environment() -> dict[str, str]:
    return {**os.environ, "BUILDAH_ISOLATION": "chroot", "STORAGE_DRIVER": "vfs"}
