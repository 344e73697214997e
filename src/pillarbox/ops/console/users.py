"""The users of a file or a variable: `name:rights:hash`, one per line.

    ada:admin+payloads:scrypt$14$8$1$…
    ben:viewer:scrypt$14$8$1$…

Only the owner of the file may read it. Errors name a line, never its content.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pillarbox.core.errors import ConfigurationError
from pillarbox.ops.console import passwords
from pillarbox.ops.console.access import User, format_rights, parse_rights

_NAME = re.compile(r"[\w.@+-]{1,64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class UserEntry:
    """A user with the hash of the password."""

    user: User
    hash: str

    def __str__(self) -> str:
        user = self.user
        return f"{user.name}:{format_rights(user.role, payloads=user.payloads)}:{self.hash}"


Users = Mapping[str, UserEntry]


def parse(text: str, *, called: str) -> dict[str, UserEntry]:
    """Parse users, by name. Raises ConfigurationError."""
    found: dict[str, UserEntry] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        user = _user(line.strip(), f"{called}, line {number}")
        if user.user.name in found:
            raise ConfigurationError(f"{called}, line {number}: {user.user.name!r} occurs twice")
        found[user.user.name] = user
    return found


def read(file: Path) -> dict[str, UserEntry]:
    """Read the users of a file. Raises ConfigurationError."""
    try:
        return parse(file.read_text(encoding="utf-8"), called=f"users file {file}")
    except FileNotFoundError:
        raise ConfigurationError(
            f"there is no users file {file}: create it with `pillarbox console user add NAME --role admin`"
        ) from None
    except OSError as error:
        raise ConfigurationError(f"the users file {file} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigurationError(f"the users file {file} is not UTF-8 text") from None


def write(file: Path, users: Users) -> None:
    """Replace the file atomically. Raises ConfigurationError."""
    text = "".join(f"{user}\n" for user in users.values())
    try:
        handle, name = tempfile.mkstemp(prefix=f".{file.name}-", dir=file.parent)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as new:
                new.write(text)
            Path(name).replace(file)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise ConfigurationError(f"the users file {file} cannot be written: {error.strerror}") from None


def check_name(name: str) -> str:
    """Return the name. Raises ConfigurationError if the file cannot hold it."""
    if not _NAME.fullmatch(name):
        raise ConfigurationError(
            f"{name!r} is not a valid user name: use characters, digits and . _ @ + - only, at most 64"
        )
    return name


def _user(line: str, place: str) -> UserEntry:
    name, _, rest = line.partition(":")
    granted, _, known = rest.partition(":")
    try:
        role, payloads = parse_rights(granted)
        passwords.check(known)
        return UserEntry(user=User(name=check_name(name), role=role, payloads=payloads), hash=known)
    except (ConfigurationError, ValueError):
        # The error itself might quote a hash.
        raise ConfigurationError(
            f"{place}: write name:role:hash or name:role+payloads:hash, with a hash from `pillarbox console user add`"
        ) from None
