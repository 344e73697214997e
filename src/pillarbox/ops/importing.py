"""What is imported only when it is wanted: objects of the application, named as MODULE:OBJECT, and extras."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TypeVar

from pillarbox.core.errors import ConfigurationError

T = TypeVar("T")


def import_object(path: str, kind: type[T]) -> T:
    """The object of that name, which must be of that kind. Raises ConfigurationError."""
    module, _, attribute = path.partition(":")
    if not (module and attribute):
        raise ConfigurationError(f"{path!r} names no object; write MODULE:OBJECT, for example shop.billing:consumer")
    # The application lies where the command is run, wherever the command itself is installed.
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    try:
        found = getattr(import_module(module), attribute)
    except ModuleNotFoundError as missing:
        if missing.name is None or not f"{module}.".startswith(f"{missing.name}."):
            raise
        raise ConfigurationError(f"there is no module {missing.name!r} here") from None
    except AttributeError:
        raise ConfigurationError(f"module {module!r} has no {attribute!r}") from None
    if not isinstance(found, kind):
        raise ConfigurationError(f"{path} is a {type(found).__name__}, not {kind.__name__}")
    return found


@contextmanager
def installed() -> Iterator[None]:
    """What is not installed is a ConfigurationError that says how to get it."""
    try:
        yield
    except ImportError as missing:
        raise ConfigurationError(str(missing)) from missing
