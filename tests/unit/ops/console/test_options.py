"""The arguments of `Console`: defined once for Python and for `[console]` of a settings file."""

from typing import Any

import pytest

from pillarbox import ConfigurationError
from pillarbox.console import Console, NoLogin
from pillarbox.ops.settings.console import ConsoleOptions, ConsoleSettings
from pillarbox.settings import settings_of
from pillarbox.stores.memory import MemoryStore


@pytest.mark.parametrize(
    ("argument", "value"), [("slo", "0s"), ("session", "soon"), ("mask", "$.email"), ("origins", [1]), ("title", None)]
)
def test_an_invalid_argument_is_rejected_by_its_name(argument: str, value: object) -> None:
    arguments: dict[str, Any] = {argument: value}
    with pytest.raises(ConfigurationError, match=rf"^Console\.{argument} is "):
        Console(MemoryStore(), login=NoLogin("ada"), **arguments)


def test_the_settings_file_has_the_same_definitions() -> None:
    in_file = {one.attribute: one for one in settings_of(ConsoleSettings)}
    assert [one for one in settings_of(ConsoleOptions) if in_file[one.attribute] != one] == []
