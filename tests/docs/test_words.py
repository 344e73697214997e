"""One term per concept: no page and no file that `words.toml` lists contains a term that was replaced."""

from __future__ import annotations

import io
import re
import tokenize
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.docs.pages import ROOT

WORDS: dict[str, Any] = tomllib.loads((ROOT / "tests/docs/words.toml").read_text(encoding="utf-8"))
MOST_EXCEPTIONS = 20

_CODE = re.compile(r"^ *```.*?^ *```$|`[^`]+`", re.MULTILINE | re.DOTALL)
_TARGET = re.compile(r"\]\([^)]*\)|<!--.*?-->|https?://\S+", re.DOTALL)
_NAME = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row of the dictionary."""

    was: str
    use: str
    where: str
    pattern: str
    example: str

    def found_in(self, source: Source) -> Iterator[str]:
        """Yield what of the replaced term is in a file, with some words around it."""
        if self.where == "names":
            yield from (name for name in sorted(source.names) if re.search(self.pattern, name))
            return
        for match in re.finditer(self.pattern, source.text, re.IGNORECASE):
            yield source.text[max(0, match.start() - 30) : match.end() + 30]


@dataclass(frozen=True, slots=True)
class Source:
    """The text and the identifiers of a file."""

    text: str
    names: frozenset[str]


ROWS = [Row(**row) for row in WORDS["row"]]
EXCEPTIONS: list[dict[str, str]] = WORDS.get("exception", [])
FILES = sorted({path for globs in WORDS["applies_to"].values() for glob in globs for path in ROOT.glob(glob)})


def read(path: Path) -> Source:
    content = path.read_text(encoding="utf-8")
    return _of_python(content) if path.suffix == ".py" else _of_page(content)


def _of_page(content: str) -> Source:
    names = {name for code in _CODE.findall(content) for name in _NAME.findall(code)}
    return Source(_flat(_TARGET.sub(" ", _CODE.sub(" ", content))), frozenset(names))


def _of_python(content: str) -> Source:
    tokens = list(tokenize.generate_tokens(io.StringIO(content).readline))
    names = frozenset(token.string for token in tokens if token.type == tokenize.NAME)
    texts = [token.string for token in tokens if token.type in (tokenize.COMMENT, tokenize.STRING)]
    return Source(_flat("\n".join(_CODE.sub(" ", text).lstrip("# ") for text in texts)), names)


def _flat(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_file_uses_the_terms_of_the_dictionary(path: Path) -> None:
    name, source = path.relative_to(ROOT).as_posix(), read(path)
    allowed = [exception["text"] for exception in EXCEPTIONS if exception["file"] == name]
    found = [
        f"{phrase!r}: use {row.use}"
        for row in ROWS
        for phrase in row.found_in(source)
        if not any(text in phrase for text in allowed)
    ]
    assert found == []


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.was)
def test_a_row_finds_its_example(row: Row) -> None:
    assert list(row.found_in(Source(row.example, frozenset({row.example}))))
    assert row.use


def test_exceptions_are_few_have_a_reason_and_are_needed() -> None:
    assert len(EXCEPTIONS) <= MOST_EXCEPTIONS
    for exception in EXCEPTIONS:
        assert exception["reason"]
        source = read(ROOT / exception["file"])
        phrases = [phrase for row in ROWS for phrase in row.found_in(source)]
        assert any(exception["text"] in phrase for phrase in phrases), f"not needed: {exception}"


def test_every_listed_glob_matches() -> None:
    globs = [glob for globs in WORDS["applies_to"].values() for glob in globs]
    assert [glob for glob in globs if not any(ROOT.glob(glob))] == []
