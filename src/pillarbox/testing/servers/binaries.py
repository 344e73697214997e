"""Where the programs of the servers are, and which Debian package has them."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

SERVERS = "PILLARBOX_TEST_SERVERS"
"""The variable with folders of programs, separated by `:`, that come before the installed ones."""


class MissingServer(Exception):
    """The machine lacks a binary that a server needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Binary:
    """One program, the package that contains it, and its folder if that is not on PATH."""

    name: str
    package: str
    elsewhere: str | None = None
    on_path: bool = True

    def find(self) -> Path | None:
        for folder in filter(None, os.environ.get(SERVERS, "").split(os.pathsep)):
            if (chosen := Path(folder, self.name)).exists():
                return chosen
        if self.elsewhere is not None:
            folder, _, pattern = self.elsewhere.partition(":")
            # The newest of several versions installed side by side.
            places = sorted(Path(folder).glob(f"{pattern}{self.name}"), key=_version)
            if places:
                return places[-1]
        found = shutil.which(self.name) if self.on_path else None
        return None if found is None else Path(found)

    def path(self) -> str:
        """Where it is; MissingServer if it is nowhere."""
        found = self.find()
        if found is None:
            raise MissingServer(
                f"{self.name} is not installed (Debian package {self.package}); install it, or name the folder of an "
                f"installed one in {SERVERS}"
            )
        return str(found)


POSTGRES = Binary(name="postgres", package="postgresql", elsewhere="/usr/lib/postgresql:*/bin/")
INITDB = Binary(name="initdb", package="postgresql", elsewhere="/usr/lib/postgresql:*/bin/")
CREATEDB = Binary(name="createdb", package="postgresql-client", elsewhere="/usr/lib/postgresql:*/bin/")
DROPDB = Binary(name="dropdb", package="postgresql-client", elsewhere="/usr/lib/postgresql:*/bin/")
# The scripts on PATH change to the user rabbitmq; the inner ones run as the calling user.
RABBITMQ_SERVER = Binary(
    name="rabbitmq-server", package="rabbitmq-server", elsewhere="/usr/lib/rabbitmq/bin:", on_path=False
)
EPMD = Binary(name="epmd", package="rabbitmq-server")


def _version(path: Path) -> tuple[int, ...]:
    return tuple(int(part) for part in path.parts if part.isdigit())
