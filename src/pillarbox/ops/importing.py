"""Import objects of the application, named as MODULE:OBJECT, and optional dependencies."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TypeVar, cast

from pillarbox.core.errors import ConfigurationError

T = TypeVar("T")


def import_object(path: str, kind: type[T]) -> T:
    """Import an object and check its type. Raises ConfigurationError."""
    found = _import(path)
    if not isinstance(found, kind):
        raise ConfigurationError(f"{path} is a {type(found).__name__}, not {kind.__name__}")
    return found


def import_callable(path: str) -> Callable[..., object]:
    """Import a function. Raises ConfigurationError."""
    found = _import(path)
    if not callable(found):
        raise ConfigurationError(f"{path} is a {type(found).__name__}; a function is required")
    return found


def _import(path: str) -> object:
    module, _, attribute = path.partition(":")
    if not (module and attribute):
        raise ConfigurationError(
            f"{path!r} does not name an object; write MODULE:OBJECT, for example shop.billing:consumer"
        )
    # The application is in the current folder, independent of where the command is installed.
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    try:
        return cast(object, getattr(import_module(module), attribute))
    except ModuleNotFoundError as missing:
        if missing.name is None or not f"{module}.".startswith(f"{missing.name}."):
            raise
        raise ConfigurationError(
            f"there is no module {missing.name!r}; run the command in the folder of the application"
        ) from None
    except AttributeError:
        raise ConfigurationError(f"module {module!r} has no object {attribute!r}; check the name") from None


@contextmanager
def installed() -> Iterator[None]:
    """Turn an ImportError into a ConfigurationError, which says what to install."""
    try:
        yield
    except ImportError as missing:
        raise ConfigurationError(str(missing)) from missing
