"""A small file system in memory, which the test fills, frees and removes."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from tests.servers import processes
from tests.servers.debian import MissingServer

MEGABYTE = 1024**2


class SmallDisk:
    """A tmpfs of a fixed size over a folder of the servers' user; only root can mount it."""

    def __init__(self, size: int) -> None:
        if os.geteuid() != 0:
            raise MissingServer("only root can mount a small file system; run this test as root")
        self.folder = processes.make_folder("disk")
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=0700", "tmpfs", self.folder], check=True)
        processes.hand_over(self.folder)
        self._filler = self.folder / "filler"

    def move(self, folder: Path) -> None:
        """Move a folder of a stopped server to this disk, and leave a link to it."""
        moved = self.folder / folder.name
        shutil.move(folder, moved)
        processes.hand_over(moved, *moved.rglob("*"))
        folder.symlink_to(moved)

    def fill(self) -> None:
        """Leave no byte free."""
        with self._filler.open("wb", buffering=0) as filler:
            block = bytes(4096)
            while True:
                try:
                    filler.write(block)
                except OSError:
                    return

    def free(self) -> None:
        self._filler.unlink()

    def close(self) -> None:
        # Lazily: after a failure a relay may still have a file open, and ends later.
        subprocess.run(["umount", "--lazy", self.folder], check=True)
        processes.remove_folder(self.folder)
