"""Shows settings in the Python reference as fields: with their default values and with their help as description."""

from __future__ import annotations

from dataclasses import is_dataclass
from importlib import import_module
from typing import Any

from griffe import Attribute, Class, Docstring, ExprCall, Extension

from pillarbox.settings import Setting, settings_of


class SettingsAsFields(Extension):
    """`name: T = setting(default, kind, help)` becomes `name: T = default` with the help as its docstring."""

    def on_attribute_instance(self, *, attr: Attribute, **_: Any) -> None:
        owner = attr.parent
        if not isinstance(owner, Class) or not isinstance(attr.value, ExprCall):
            return
        if str(attr.value.function).endswith("setting") and (found := _settings(owner).get(attr.name)) is not None:
            attr.value = repr(found.default)
            attr.docstring = attr.docstring or Docstring(found.help, parent=attr)


def _settings(owner: Class) -> dict[str, Setting]:
    """The settings of a class, by the names of its fields."""
    found = getattr(import_module(owner.module.path), owner.name, None)
    return {one.attribute: one for one in settings_of(found)} if is_dataclass(found) else {}
