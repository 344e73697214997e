import pytest

from pillarbox.ops.console import passwords


def test_a_hash_matches_its_password_and_no_other() -> None:
    known = passwords.hashed("correct horse")
    assert passwords.matches("correct horse", known)
    assert not passwords.matches("correct horse ", known)
    assert "correct" not in known


def test_the_same_password_never_has_the_same_hash() -> None:
    assert passwords.hashed("x") != passwords.hashed("x")


@pytest.mark.parametrize(
    "known",
    ["", "x", "bcrypt$14$8$1$AA==$AA==", "scrypt$14$8$AA==$AA==", "scrypt$30$8$1$AA==$AA==", "scrypt$14$8$1$!$AA=="],
)
def test_an_invalid_hash_is_rejected(known: str) -> None:
    with pytest.raises(ValueError, match=r"hash|base64|character|literal"):
        passwords.check(known)
