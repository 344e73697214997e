"""Every regular expression of the package and the applications takes linear time for any text.

Patterns are found by walking modules and syntax trees, so that new ones are included. Hostile texts consist of each
pattern's own characters. The test compares how the steps of a match grow with the length, independent of the machine.
"""

from __future__ import annotations

import ast
import importlib
import math
import pkgutil
import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from re import _parser as parser  # type: ignore[attr-defined]
from types import ModuleType
from typing import Any

import django
import pytest
from django.conf import settings
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.regex_steps import Matcher, TooMany

ROOT = Path(__file__).parents[2]
PACKAGES = {"pillarbox": ROOT / "src" / "pillarbox", "apps": ROOT / "apps"}
CALLS = {"compile", "search", "match", "fullmatch", "sub", "subn", "split", "findall", "finditer"}

MADE_OF_DATA = {
    ("pillarbox.ops.console.masking", "compile"): "an operator's own rule, refused unless its work is bounded",
    ("pillarbox.admin.diagnosis", "sub"): "an escaped event id",
}
"""Calls with a computed pattern, and why their work is bounded."""

SHORT, LONG = 200, 400
"""Characters of the texts."""
BOUND = 20
"""The limit of repetitions: far below the lengths of the texts, so that bounded ones cost the same."""
GROWTH = 3
"""The allowed growth for twice the text: a linear pattern takes 2 times the steps, a quadratic one 4."""
MOST = 200 * LONG
"""The allowed steps for a text: a linear pattern takes tens per character."""


@pytest.fixture(scope="module", autouse=True)
def django_application() -> None:
    """The modules of a Django application can be imported only in a project."""
    if not settings.configured:
        contrib = [f"django.contrib.{name}" for name in ("admin", "auth", "contenttypes", "messages", "sessions")]
        settings.configure(INSTALLED_APPS=[*contrib, "pillarbox.integrations.django"])
    django.setup()


def modules(package: str) -> Iterator[str]:
    yield package
    for found in pkgutil.walk_packages([str(PACKAGES[package])], prefix=f"{package}."):
        if ".migrations." not in found.name:
            yield found.name


def patterns_in(value: object, depth: int = 4) -> Iterator[re.Pattern[Any]]:
    match value:
        case re.Pattern():
            yield value
        case tuple() | list() | set() | frozenset() if depth:
            for one in value:
                yield from patterns_in(one, depth - 1)
        case dict() if depth:
            for one in (*value.keys(), *value.values()):
                yield from patterns_in(one, depth - 1)


def kept_by(module: ModuleType) -> Iterator[tuple[str, re.Pattern[Any]]]:
    """Patterns in attributes of a module or its classes, with their names."""
    for name, value in list(vars(module).items()):
        for pattern in patterns_in(value):
            yield name, pattern
        if isinstance(value, type) and value.__module__ == module.__name__:
            for member in list(vars(value).values()):
                for pattern in patterns_in(member):
                    yield name, pattern


ANCHORED = {"match", "fullmatch"}
"""Functions that match only at the start."""


def searched_in(tree: ast.Module) -> set[str]:
    """Names of patterns that are searched for anywhere in a text, or passed on."""
    anchored = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr in ANCHORED}
    read = (node for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load))
    return {node.id for node in read if id(node) not in anchored}


def called_in(tree: ast.Module) -> Iterator[tuple[str, bool, str | None]]:
    """Each call of `re`: the function, whether the module keeps its result, and its pattern if it is a literal."""
    top = {
        id(node)
        for statement in tree.body
        if not isinstance(statement, ast.FunctionDef)
        for node in _outside(statement)
    }
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id == "re"
            and node.func.attr in CALLS
        ):
            first = node.args[0]
            value = getattr(first, "value", None)
            constant = value if isinstance(value, str) else None
            yield node.func.attr, node.func.attr == "compile" and id(node) in top, constant


def renamed_in(tree: ast.Module) -> list[str]:
    """Functions of `re` that are imported by name, so that their calls would not be found."""
    found: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "re":
            found += [alias.name for alias in node.names if alias.name in CALLS]
        elif isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name == "re" and alias.asname is not None]
    return found


def _outside(statement: ast.stmt) -> Iterator[ast.AST]:
    """Nodes that run when the module is imported."""
    waiting: list[ast.AST] = [statement]
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            waiting.extend(ast.iter_child_nodes(node))


def every_pattern(package: str) -> dict[str, tuple[re.Pattern[Any], bool]]:
    """Each pattern once, and whether it is searched for anywhere in a text. Fails for an unknown pattern."""
    found: dict[str, tuple[re.Pattern[Any], bool]] = {}
    for name in modules(package):
        module = importlib.import_module(name)
        file = module.__file__
        assert file is not None
        tree = ast.parse(Path(file).read_text(encoding="utf-8"))
        assert renamed_in(tree) == [], f"{name}: write `import re`, so that its patterns are found"
        searched = searched_in(tree)
        for called, pattern in kept_by(module):
            found[f"{name} {pattern.pattern!r}"] = pattern, not called.startswith("_") or called in searched
        for function, kept, constant in called_in(tree):
            if constant is not None and not kept:
                found[f"{name} {constant!r}"] = re.compile(constant), function not in ANCHORED
            elif constant is None and not kept:
                assert (name, function) in MADE_OF_DATA, f"{name}: the pattern of re.{function} is made of data"
    return found


def characters_of(pattern: str | bytes) -> list[str]:
    """A few characters that each part of the pattern matches, those of repeated parts first."""
    reported: list[str] = []
    repeated: list[str] = []

    def walk(node: Any) -> None:
        if isinstance(node, parser.SubPattern):
            for operation, given in node:
                if str(operation) in ("LITERAL", "NOT_LITERAL"):
                    reported.append(chr(given))
                elif str(operation).endswith("_REPEAT"):
                    count = len(reported)
                    walk(given)
                    repeated.extend(reported[count:])
                elif str(operation) == "RANGE":
                    reported.extend(map(chr, given))
                elif str(operation) == "CATEGORY":
                    reported.append({"CATEGORY_DIGIT": "7", "CATEGORY_SPACE": " "}.get(str(given), "w"))
                else:
                    walk(given)
        elif isinstance(node, tuple | list):
            if len(node) == 2 and str(node[0]) in ("LITERAL", "RANGE", "CATEGORY"):
                walk(_one(node))
            else:
                for one in node:
                    walk(one)

    def _one(pair: Any) -> Any:
        made = parser.SubPattern(parser.State())
        made.append(pair)
        return made

    walk(parser.parse(pattern))
    return list(dict.fromkeys(["a", *repeated, *reported, "1", "\\", " "]))[:7]


def beginnings_of(pattern: str | bytes) -> list[str]:
    """The shortest texts that lead to each repetition of the pattern, such as `date:` in `date:[^;]*;`."""
    found = [""]

    def shortest(node: Any, before: str) -> str:
        for operation, arguments in node:
            match str(operation):
                case "LITERAL":
                    before += chr(arguments)
                case "IN":
                    literals = [value for kind, value in arguments if str(kind) == "LITERAL"]
                    before += chr(literals[0]) if literals and str(arguments[0][0]) != "NEGATE" else "a"
                case "NOT_LITERAL" | "ANY":
                    before += "a"
                case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                    found.append(before)
                    least, _, repeated = arguments
                    after = shortest(repeated, before)
                    before += after[len(before) :] * least
                case "SUBPATTERN":
                    before = shortest(arguments[-1], before)
                case "BRANCH":
                    before = next(shortest(one, before) for one in arguments[1])
        return before

    shortest(parser.parse(pattern), "")
    return list(dict.fromkeys(found))


def hostile(pattern: re.Pattern[Any], length: int) -> Iterator[str]:
    """Long texts of one or two of its characters, with an end that does not match."""
    characters = characters_of(pattern.pattern)
    for before, one, other in product(beginnings_of(pattern.pattern), characters, characters):
        yield before + one + other * length + "\x01"
        if not before:
            yield (one + other) * (length // 2) + "\x01"


def steps_of(matcher: Matcher, text: Any, *, searched: bool) -> int:
    steps = 0
    if searched:
        matcher.sub(text, limit=MOST)
        steps = matcher.steps
    matcher.fullmatch(text, limit=MOST)
    return steps + matcher.steps


def growth(pattern: re.Pattern[Any], *, searched: bool = True) -> tuple[float, str]:
    """The worst growth and its text; infinite if a text takes too many steps."""
    matcher, worst = Matcher(pattern, bound=BOUND), (0.0, "")
    for texts in zip(hostile(pattern, SHORT), hostile(pattern, LONG), strict=True):
        asked = [text.encode(errors="replace") if isinstance(pattern.pattern, bytes) else text for text in texts]
        try:
            short, long = (steps_of(matcher, text, searched=searched) for text in asked)
        except TooMany:
            return math.inf, texts[0][:40]
        worst = max(worst, (long / short, texts[0][:40]))
    return worst


@pytest.mark.parametrize("package", PACKAGES)
def test_every_module_is_searched(package: str) -> None:
    looked_at = {Path(str(importlib.import_module(name).__file__)) for name in modules(package)}
    left_out = set(PACKAGES[package].rglob("*.py")) - looked_at
    assert [file for file in left_out if "migrations" not in file.parts] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_every_pattern_is_linear(package: str) -> None:
    patterns = every_pattern(package)
    assert len(patterns) >= {"pillarbox": 30, "apps": 2}[package]
    grown = {name: growth(pattern, searched=searched) for name, (pattern, searched) in patterns.items()}
    assert {name: worst for name, worst in grown.items() if worst[0] > GROWTH} == {}


def test_exponential_and_quadratic_patterns_are_found() -> None:
    assert growth(re.compile(r"a+b"))[0] > GROWTH
    assert growth(re.compile(r"a*+b"))[0] > GROWTH  # can match at every position
    assert growth(re.compile(r"(?<!a)a++b"))[0] <= GROWTH
    assert growth(re.compile(r"""(["'`])(?:\\.|(?!\1).){0,500}?\1(?!\w)"""))[0] == math.inf
    assert growth(re.compile(r"(?:a|b|ab)*c"), searched=False)[0] == math.inf
    assert growth(re.compile(r"^(?:date|location):[ ]*([^\n]*?)[ ]*$", re.M))[0] > GROWTH  # behind its literals


def test_an_atomic_group_is_rejected() -> None:
    with pytest.raises(NotImplementedError):
        Matcher(re.compile(r"\d++(?:[.,:]\d++)*+"))


@pytest.mark.parametrize("package", PACKAGES)
def test_the_counting_matcher_finds_the_same_matches(package: str) -> None:
    """The counting matcher agrees with `re` on every text used here."""
    for name, (pattern, _) in every_pattern(package).items():
        matcher = Matcher(pattern)
        for text in hostile(pattern, 12):
            asked: Any = text.encode(errors="replace") if isinstance(pattern.pattern, bytes) else text
            assert matcher.sub(asked) == [found.span() for found in pattern.finditer(asked)], (name, text)
            assert matcher.fullmatch(asked) is (pattern.fullmatch(asked) is not None), (name, text)


@given(
    st.sampled_from(
        [
            r"(?:a|b|ab)*c",
            r"(a*)*b|b*?a",
            r"""(["'`])(?:\\.|(?!\1).){0,5}?\1(?!\w)""",
            r"(?<!a)a++b",
            r"(?<=ab)(?:a|(?:b|c)+)?\b",
            r"^a{2,3}?(b?)\1$",
            r"(?:a|ab)c?|(?=ab)a",
        ]
    ),
    st.text("abc\"'\\ ", max_size=12),
)
def test_the_matcher_agrees_with_re(pattern: str, text: str) -> None:
    compiled, matcher = re.compile(pattern), Matcher(re.compile(pattern))
    assert matcher.sub(text) == [found.span() for found in compiled.finditer(text)]
    assert matcher.fullmatch(text) is (compiled.fullmatch(text) is not None)
