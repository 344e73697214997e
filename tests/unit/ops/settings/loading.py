"""Settings out of texts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from pillarbox.ops.settings import Settings, SettingsError


def load(file: Path | None = None, flags: Mapping[str, str] | None = None, /, **environment: str) -> Settings:
    """The settings of a file, variables and flags; nothing of the environment of the tests."""
    return Settings.load(file, environment, flags)


def problems(file: Path | None = None, flags: Mapping[str, str] | None = None, /, **environment: str) -> list[str]:
    """What is wrong with them."""
    with pytest.raises(SettingsError) as raised:
        load(file, flags, **environment)
    return list(raised.value.problems)


def origins(settings: Settings) -> dict[str, str]:
    return {entry.name: str(entry.origin) for entry in settings.entries}
