import pytest

from pillarbox.core.errors import ConfigurationError
from pillarbox.ops.console.json_text import parse, text
from pillarbox.ops.console.masking import HIDDEN, Masks

ORDER = b'{"customer":{"email":"a@b","name":"Ada"},"items":[{"name":"x","n":1},{"name":"y"}],"email":{"to":"c@d"}}'


def masked(*rules: str) -> str:
    return "".join(text(Masks(rules).payload(parse(ORDER))).split())


@pytest.mark.parametrize(
    ("rule", "gone", "kept"),
    [
        ("$.customer.email", ["a@b"], ["c@d", "Ada"]),
        ("$.items[*].name", ['"x"', '"y"'], ["a@b", '"n":1']),
        ("$.items[0].name", ['"x"'], ['"y"']),
        ("$..email", ["a@b", "c@d"], ["Ada"]),
        ("$..name", ["Ada", '"x"', '"y"'], ["a@b"]),
        ("$.customer", ["a@b", "Ada"], ["c@d"]),
        ("$.customer.*", ["a@b", "Ada"], ["c@d"]),
        ("$.nothing.here", [], ["a@b", "Ada", "c@d"]),
    ],
)
def test_a_rule_masks_its_values_only(rule: str, gone: list[str], kept: list[str]) -> None:
    shown = masked(rule)
    assert [value for value in gone if value in shown] == []
    assert [value for value in kept if value not in shown] == []


def test_every_repeat_of_a_name_is_masked() -> None:
    document = parse(b'{"email":"first","email":"second"}')
    shown = text(Masks(["$.email"]).payload(document))
    assert shown.count(HIDDEN) == 2


def test_headers_are_masked_by_name_in_any_case() -> None:
    masks = Masks(["header:Authorization"])
    assert masks.headers({"authorization": "secret", "tenant": "north"}) == {"authorization": HIDDEN, "tenant": "north"}
    assert not masks.payloads


def test_patterns_are_searched_in_errors_headers_and_values_of_payloads() -> None:
    masks = Masks(["text:[^ ]+@[^ ]+", r"TEXT: \b\d{16}\b"])
    assert masks.text("no mail for jane@example.com, card 4242424242424242") == f"no mail for {HIDDEN} card {HIDDEN}"
    assert masks.text(None) == ""
    assert masks.headers({"from": "jane@example.com", "tenant": "north"}) == {"from": HIDDEN, "tenant": "north"}
    document = parse(b'{"note":"call ada@example.com","list":[4242424242424242,1.10],"n":null}')
    shown = "".join(text(masks.payload(document)).split())
    assert shown == f'{{"note":"call{HIDDEN}","list":["{HIDDEN}",1.10],"n":null}}'
    assert masks.payloads


def test_text_of_a_response_is_searched_and_links_are_not() -> None:
    masks = Masks(["text:[^ ]+@[^ ]+"])
    reported = {"key": "a@b", "last_error": "no a@b", "groups": [{"reason": "a@b", "event_id": "a@b"}], "why": None}
    assert masks.response(reported) == {
        "key": "a@b",
        "last_error": f"no {HIDDEN}",
        "groups": [{"reason": HIDDEN, "event_id": "a@b"}],
        "why": None,
    }


@pytest.mark.parametrize(
    "rule", ["text:", "text:(", "text:a*", "text:a{99999999999999999999}", f"text:{'(' * 2000}a{')' * 2000}"]
)
def test_an_invalid_pattern_is_rejected(rule: str) -> None:
    with pytest.raises(ConfigurationError, match="is not a rule"):
        Masks([rule])


@pytest.mark.parametrize("rule", ["", "$", "customer.email", "$customer", "$.a[", "$.a[x]", "$.a..", "$. "])
def test_an_invalid_rule_is_rejected(rule: str) -> None:
    with pytest.raises(ConfigurationError, match="is not a rule"):
        Masks([rule])
