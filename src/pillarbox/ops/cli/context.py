"""The invocation of `pillarbox` that a command belongs to: global options and settings."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from pillarbox.ops.settings import Settings


@dataclass(kw_only=True)
class Invocation:
    """The global options. Settings are loaded on first use, so that help works with invalid settings."""

    config: str | None = None
    flags: Mapping[str, str] = field(default_factory=dict[str, str])
    spelt: Mapping[str, str] = field(default_factory=dict[str, str])
    """Flags that were given as a separate option → that option, for error messages."""
    verbose: bool = False
    named_store: bool = False
    """It was printed which file is the store by default."""

    @cached_property
    def settings(self) -> Settings:
        from pillarbox.ops.settings import Settings
        from pillarbox.ops.settings.sources import find_file

        return Settings.load(find_file(self.config, os.environ), os.environ, self.flags, self.spelt)


def quiet_drivers() -> None:
    """Silence the logs of drivers, which repeat our own lines, unless --verbose is given."""
    if not current_invocation().verbose:
        logging.getLogger("pika").setLevel(logging.CRITICAL)


def log_to_stderr() -> None:
    """Log as [logging] says; --verbose logs everything. Raises ConfigurationError for invalid settings."""
    options = current_settings().logging
    if current_invocation().verbose:
        replace(options, level="DEBUG", events=True).apply(replace=True)
    else:
        options.apply()
    quiet_drivers()


def current_invocation() -> Invocation:
    """Return the running invocation."""
    return click.get_current_context().ensure_object(Invocation)


def current_settings() -> Settings:
    """Return the settings of this invocation, loaded on first use. Raises ConfigurationError."""
    return current_invocation().settings
