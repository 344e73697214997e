"""One term per concept: no file that `words.toml` lists contains a term that was replaced."""

from __future__ import annotations

import io
import re
import tokenize
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.docs.pages import ROOT

WORDS: dict[str, Any] = tomllib.loads((ROOT / "tests/docs/words.toml").read_text(encoding="utf-8"))
MOST_EXCEPTIONS = 20

_CODE = re.compile(r"^ *```.*?^ *```$|`[^`]+`", re.MULTILINE | re.DOTALL)
_TARGET = re.compile(r"\]\([^)]*\)|<!--.*?-->|https?://\S+", re.DOTALL)
_NAME = re.compile(r"[A-Za-z_][\w-]*")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SQL = re.compile(r"(?P<comment>--[^\n]*)|(?P<string>'(?:[^']|'')*')")
_SCRIPT = re.compile(
    r"(?P<comment>/\*.*?\*/|(?<![:\\])//[^\n]*)|(?P<string>\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|`[^`]*`)",
    re.DOTALL,
)
_TEMPLATE_CODE = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)
_TAG = re.compile(r"<[^>]*>", re.DOTALL)
_SHOWN_ATTRIBUTE = re.compile(r"\b(?:title|alt|placeholder|aria-label|value|data-[a-z-]+)=\"([^\"]*)\"")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row of the dictionary."""

    was: str
    use: str
    example: str
    text: str = ""
    names: str = ""

    def found_in(self, source: Source) -> Iterator[str]:
        """Yield what of the replaced term is in a file, with some words around it."""
        if self.names:
            yield from (name for name in sorted(source.names) if re.search(self.names, name))
        if not self.text:
            return
        for match in re.finditer(self.text, source.text, re.IGNORECASE):
            yield source.text[max(0, match.start() - 30) : match.end() + 30]

    def found_in_names(self, source: Source) -> Iterator[str]:
        """Yield the identifiers that contain the replaced term, read as words."""
        if self.text:
            yield from (name for name in sorted(source.names) if re.search(self.text, as_words(name), re.IGNORECASE))


@dataclass(frozen=True, slots=True)
class Source:
    """The text and the identifiers of a file."""

    text: str
    names: frozenset[str]


ROWS = [Row(**row) for row in WORDS["row"]]
EXCEPTIONS: list[dict[str, str]] = WORDS.get("exception", [])


@cache
def as_words(name: str) -> str:
    """An identifier as words: `_in_flight`, `in-flight` and `InFlight` become `in flight`."""
    return _CAMEL.sub(" ", name).replace("_", " ").replace("-", " ").strip()


def listed(section: str) -> list[Path]:
    """The files of a section of `words.toml`: those that its globs match, without those that `except` matches."""
    globs = {key: {path for glob in each for path in ROOT.glob(glob)} for key, each in WORDS[section].items()}
    excluded = globs.pop("except", set())
    return sorted(path for path in set().union(*globs.values()) - excluded if path.is_file())


FILES = listed("applies_to")
FILES_WITH_NAMES = listed("identifiers")


def read(path: Path) -> Source:
    content = path.read_text(encoding="utf-8")
    return _READERS.get(path.suffix, _of_settings)(content)


def _of_page(content: str) -> Source:
    names = {name for code in _CODE.findall(content) for name in _NAME.findall(code)}
    return Source(_flat(_TARGET.sub(" ", _CODE.sub(" ", content))), frozenset(names))


def _of_python(content: str) -> Source:
    tokens = list(tokenize.generate_tokens(io.StringIO(content).readline))
    names = frozenset(token.string for token in tokens if token.type == tokenize.NAME)
    texts = [token.string for token in tokens if token.type in (tokenize.COMMENT, tokenize.STRING)]
    return Source(_flat("\n".join(_CODE.sub(" ", text).lstrip("# ") for text in texts)), names)


def _of_sql(content: str) -> Source:
    return _of_tokens(content, _SQL, "-")


def _of_script(content: str) -> Source:
    return _of_tokens(content, _SCRIPT, "/* ")


def _of_tokens(content: str, pattern: re.Pattern[str], marks: str) -> Source:
    """Comments and strings are text; what is left has the identifiers."""
    texts = [match[0].strip(marks) for match in pattern.finditer(content)]
    return Source(_flat("\n".join(texts)), frozenset(_NAME.findall(pattern.sub(" ", content))))


def _of_template(content: str) -> Source:
    names = {name for code in _TEMPLATE_CODE.findall(content) for name in _NAME.findall(code)}
    page = _TEMPLATE_CODE.sub(" ", content)
    return Source(_flat(" ".join([_TAG.sub(" ", page), *_SHOWN_ATTRIBUTE.findall(page)])), frozenset(names))


def _of_settings(content: str) -> Source:
    """All of it is text: keys, values and comments of YAML and TOML, shell scripts, the Makefile."""
    return Source(_flat(_TARGET.sub(" ", content)), frozenset(_NAME.findall(content)))


_READERS: dict[str, Callable[[str], Source]] = {
    ".css": _of_script,
    ".html": _of_template,
    ".js": _of_script,
    ".md": _of_page,
    ".py": _of_python,
    ".sql": _of_sql,
}


def _flat(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_file_uses_the_terms_of_the_dictionary(path: Path) -> None:
    source = read(path)
    assert _not_allowed(path, [(phrase, row) for row in ROWS for phrase in row.found_in(source)]) == []


@pytest.mark.parametrize("path", FILES_WITH_NAMES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_identifiers_use_the_terms_of_the_dictionary(path: Path) -> None:
    source = read(path)
    assert _not_allowed(path, [(name, row) for row in ROWS for name in row.found_in_names(source)]) == []


def _not_allowed(path: Path, found: list[tuple[str, Row]]) -> list[str]:
    name = path.relative_to(ROOT).as_posix()
    allowed = [exception["text"] for exception in EXCEPTIONS if exception["file"] == name]
    return [f"{phrase!r}: use {row.use}" for phrase, row in found if not any(text in phrase for text in allowed)]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.was)
def test_a_row_finds_its_example(row: Row) -> None:
    assert row.use
    assert row.text or row.names
    if row.text:
        assert list(row.found_in(Source(row.example, frozenset())))
    if row.names:
        assert any(re.search(row.names, name) for name in row.example.split())


@pytest.mark.parametrize(
    ("suffix", "content"),
    [
        (".md", "What the relay has {}."),
        (".py", "# {}\nvalue = 1\n"),
        (".py", "text = 'what is {}'\n"),
        (".sql", "SELECT 1; -- what is {}\n"),
        (".sql", "SELECT 'what is {}'"),
        (".html", "<p>3 {{{{ count }}}} {}</p>"),
        (".html", '<p title="{}"></p>'),
        (".js", "// {}\n"),
        (".js", "show('{}')"),
        (".yml", "summary: what is {}"),
        ("", "run: ## what is {}"),
    ],
)
def test_a_replaced_term_is_found_in_every_kind_of_file(tmp_path: Path, suffix: str, content: str) -> None:
    page, row = tmp_path / f"Page{suffix}", ROWS[0]
    page.write_text(content.format(row.example), encoding="utf-8")
    assert list(row.found_in(read(page)))


@pytest.mark.parametrize(
    ("suffix", "content"),
    [(".py", "def test_{}(): ...\n"), (".sql", "SELECT {} FROM {{relay}}"), (".html", "{{{{ relay.{} }}}}")],
)
def test_a_replaced_term_is_found_in_identifiers(tmp_path: Path, suffix: str, content: str) -> None:
    page, row = tmp_path / f"Page{suffix}", ROWS[0]
    page.write_text(content.format(row.example.replace(" ", "_")), encoding="utf-8")
    assert list(row.found_in_names(read(page)))


def test_exceptions_are_few_have_a_reason_and_are_needed() -> None:
    assert len(EXCEPTIONS) <= MOST_EXCEPTIONS
    for exception in EXCEPTIONS:
        assert exception["reason"]
        source = read(ROOT / exception["file"])
        phrases = [phrase for row in ROWS for phrase in (*row.found_in(source), *row.found_in_names(source))]
        assert any(exception["text"] in phrase for phrase in phrases), f"not needed: {exception}"


def test_every_listed_glob_matches() -> None:
    globs = [glob for section in ("applies_to", "identifiers") for globs in WORDS[section].values() for glob in globs]
    assert [glob for glob in globs if not any(ROOT.glob(glob))] == []
