"""The page of requirements is complete, and says of nothing that it is shown which is not."""

import re

import pytest

from tests.docs.nodes import NODE, exists
from tests.docs.pages import ROOT

PAGE = (ROOT / "docs/contributing/requirements.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (\d{3}-\d+) \| (.+?) \| (.*?)\| (.+) \|$", PAGE, re.MULTILINE)
HOW_MANY = {"000": 98, "001": 123, "002": 72, "003": 52, "004": 60}
"""Numbers of each of the five documents."""
KINDS = ("**open**: ", "**partly**: ", "**measured**: ", "**not taken**: ", "**words**: ")


def test_every_number_has_its_row_in_its_place() -> None:
    assert [number for number, *_ in ROWS] == [
        f"{document}-{number}" for document, count in HOW_MANY.items() for number in range(1, count + 1)
    ]


def test_a_row_is_shown_by_a_test_or_says_what_it_is_instead() -> None:
    unproven = [number for number, *_, proof in ROWS if not NODE.search(proof) and not proof.startswith(KINDS)]
    assert unproven == []


def test_every_named_proof_is_a_test() -> None:
    """With its file, and not only a file."""
    proofs = "\n".join(proof for *_, proof in ROWS)
    assert NODE.findall(proofs) == re.findall(r"`([^`]*\btest[^`]*)`", proofs)


@pytest.mark.parametrize("node", sorted(set(NODE.findall(PAGE))))
def test_every_named_test_exists(node: str) -> None:
    assert exists(node)


def test_a_measured_requirement_names_a_target_of_the_makefile() -> None:
    measured = set(re.findall(r"\*\*measured\*\*: `([^`]+)`", PAGE))
    assert measured == {"make bench"}
    assert re.search("^bench:", (ROOT / "Makefile").read_text(), re.MULTILINE)


def test_a_partly_met_requirement_names_the_tests_of_its_met_part() -> None:
    assert [number for number, *_, proof in ROWS if "**partly**: " in proof and not NODE.search(proof)] == []


def test_no_behaviour_is_shown_by_a_test_of_a_page() -> None:
    """A test that reads the documentation shows that a page is complete, not that the software does it."""
    of_pages = re.compile(r"tests/docs/(?!test_sql|test_snippets)\w+\.py|_page\.py|(?:is|are)_documented|asterisk")
    assert [number for number, *_, proof in ROWS for node in NODE.findall(proof) if of_pages.search(node)] == []


def test_the_page_counts_what_is_open_and_what_holds_in_part() -> None:
    still_open = sum("**open**: " in proof for *_, proof in ROWS)
    in_part = sum("**partly**: " in proof for *_, proof in ROWS)
    verbs = "is" if still_open == 1 else "are", "holds" if in_part == 1 else "hold"
    assert f"Of {len(ROWS)} numbers, {still_open} {verbs[0]} open and {in_part} {verbs[1]} in part." in PAGE
