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
def test_rules(rule: str, gone: list[str], kept: list[str]) -> None:
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


@pytest.mark.parametrize("rule", ["", "$", "customer.email", "$customer", "$.a[", "$.a[x]", "$.a..", "$. "])
def test_what_is_no_rule_is_refused(rule: str) -> None:
    with pytest.raises(ConfigurationError, match="is no rule"):
        Masks([rule])
