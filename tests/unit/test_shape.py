"""The limits of the source tree: one class per name, few modules in the core and the relay, a small `Store`."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from inspect import isfunction
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

import pillarbox
from pillarbox.core.store import Store

PACKAGE = Path(pillarbox.__file__).parent
NOT_COUNTED = {"capabilities", "schema"}
"""What of a store is no part of the relay's half."""


NAMED_BY_DJANGO = {"Command", "Event", "Meta", "Migration"}
"""Django looks for these names, or, for models, keeps them in the database."""


def classes() -> Iterator[tuple[str, Path]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                yield node.name, path.relative_to(PACKAGE)


def test_a_class_name_is_defined_once() -> None:
    homes: defaultdict[str, list[Path]] = defaultdict(list)
    for name, path in classes():
        homes[name].append(path)
    repeated = {name: paths for name, paths in homes.items() if len(paths) > 1}
    assert {name: paths for name, paths in repeated.items() if not may_repeat(name, paths)} == {}


def may_repeat(name: str, paths: list[Path]) -> bool:
    """Whether Django prescribes the name, or modules of one name in several folders, as of two engines, have private
    classes with the same part."""
    elsewhere = [path for path in paths if not path.is_relative_to("integrations/django")]
    if name in NAMED_BY_DJANGO and len(elsewhere) <= 1:
        return True
    same_module = len({path.name for path in paths}) == 1 and len({path.parent.parent for path in paths}) == 1
    return name.startswith("_") and same_module and len(set(paths)) == len(paths)


@pytest.mark.parametrize(("folder", "most"), [("relay", 18), ("core", 16)])
def test_a_folder_has_few_modules(folder: str, most: int) -> None:
    modules = [path.name for path in (PACKAGE / folder).rglob("*.py") if path.name != "__init__.py"]
    assert 0 < len(modules) <= most, modules


def test_a_store_has_at_most_26_methods() -> None:
    facets = [
        get_type_hints(member.fget)["return"]
        for name, member in vars(Store).items()
        if isinstance(member, property) and name not in NOT_COUNTED
    ]
    protocols: list[type[Any]] = [facet for either in facets for facet in get_args(either) or (either,)]
    methods = [
        f"{protocol.__name__}.{name}"
        for protocol in protocols
        for name, member in vars(protocol).items()
        if isfunction(member) and not name.startswith("_")
    ]
    assert {"Messages.fetch", "Writes.settle", "Ledger.begin"} < set(methods)
    assert len(methods) <= 26, methods
