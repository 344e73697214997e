"""Where a value comes from, and what it is called there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from pillarbox.settings import Setting

Path = tuple[str, ...]
"""A setting's place in the file: ("relay", "retry", "base"); a table of a list is written ("routes[0]", "to")."""


def dotted(path: Path) -> str:
    return ".".join(path)


@dataclass(frozen=True, slots=True)
class Origin:
    """In the order of precedence."""

    kind: Literal["flag", "environment", "file", "preset", "default"]
    name: str = ""
    """The flag, the variable, the file, the preset."""

    def __str__(self) -> str:
        return f"{self.kind} {self.name}" if self.kind == "preset" else self.name or self.kind

    def calls(self, path: Path) -> str:
        """The setting as its author wrote it: the variable, the flag, the key and its file."""
        match self.kind:
            case "flag" | "environment":
                return self.name
            case "file":
                return f"{dotted(path)} in {self.name}"
            case _:
                return dotted(path)


DEFAULT = Origin("default")


@dataclass(frozen=True, slots=True)
class Given:
    """A value as it was written, not yet checked; `is_text` where a variable or a flag holds it."""

    value: Any
    origin: Origin
    is_text: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingEntry:
    """One setting as it is in force. `shown` is for output: a password is masked in it."""

    path: Path
    key: Setting
    shown: Any
    origin: Origin

    @property
    def name(self) -> str:
        return dotted(self.path)

    @property
    def called(self) -> str:
        """The setting as its author wrote it: the variable, the flag, the key and its file."""
        return self.origin.calls(self.path)

    @property
    def written(self) -> bool:
        """Written out: neither a default nor a preset."""
        return self.origin.kind in ("flag", "environment", "file")
