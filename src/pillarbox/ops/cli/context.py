"""What all commands know of the invocation they belong to."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from pillarbox.ops.settings import Settings


@dataclass(kw_only=True)
class Invocation:
    """The options of `pillarbox` itself. Settings are read when a command asks: help must work with wrong ones."""

    config: str | None = None
    flags: Mapping[str, str] = field(default_factory=dict)
    spelt: Mapping[str, str] = field(default_factory=dict)
    """Of the flags, those that were written as an option of their own, and how."""
    verbose: bool = False

    @cached_property
    def settings(self) -> Settings:
        from pillarbox.ops.settings import Settings
        from pillarbox.ops.settings.sources import find_file

        return Settings.load(find_file(self.config, os.environ), os.environ, self.flags, self.spelt)


def quiet_drivers() -> None:
    """What a driver has to say becomes a line of ours, told once; --verbose shows both."""
    if not current_invocation().verbose:
        logging.getLogger("pika").setLevel(logging.CRITICAL)


def current_invocation() -> Invocation:
    """The one that is running."""
    return click.get_current_context().ensure_object(Invocation)


def current_settings() -> Settings:
    """The settings of this invocation, read when a command first asks. Raises ConfigurationError."""
    return current_invocation().settings
