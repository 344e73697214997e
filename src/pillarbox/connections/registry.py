"""Every driver that has a module in `drivers/`: to support another one, add its module there."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from pillarbox.connections import drivers
from pillarbox.connections.driver import ClassName, Driver


@cache
def known_drivers() -> tuple[Driver, ...]:
    """The drivers, by the names of their modules."""
    names = sorted(module.name for module in iter_modules(drivers.__path__))
    return tuple(import_module(f"{drivers.__name__}.{name}").DRIVER for name in names)


@cache
def known_classes(kind: str) -> Mapping[ClassName, Any]:
    """The entries of all drivers in one field of `Driver`."""
    return {name: entry for driver in known_drivers() for name, entry in getattr(driver, kind).items()}
