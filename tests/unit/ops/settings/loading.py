"""Loads settings from texts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from pillarbox.core.errors import SettingsError
from pillarbox.ops.settings import Settings


def load(file: Path | None = None, flags: Mapping[str, str] | None = None, /, **environment: str) -> Settings:
    """Load the settings of a file, variables and flags, without the environment of the tests."""
    return Settings.load(file, environment, flags)


def problems(file: Path | None = None, flags: Mapping[str, str] | None = None, /, **environment: str) -> list[str]:
    """The errors of the settings."""
    with pytest.raises(SettingsError) as raised:
        load(file, flags, **environment)
    return list(raised.value.problems)


def origins(settings: Settings) -> dict[str, str]:
    return {entry.name: str(entry.origin) for entry in settings.entries}
