from datetime import UTC, datetime, timedelta

import pytest

from pillarbox.core.errors import ConfigurationError
from pillarbox.ops.console.sessions import LoginSession, Signer, is_valid_token, make_token, open_session, sign_session

KEY = "sixteen characters, or more"


class Clock:
    def __init__(self) -> None:
        self.at = datetime(2026, 11, 30, 12, tzinfo=UTC)

    def now(self) -> datetime:
        return self.at

    def monotonic(self) -> float:
        return self.at.timestamp()

    async def sleep(self, seconds: float) -> None:
        self.at += timedelta(seconds=seconds)


def test_a_session_round_trips() -> None:
    signer, session = Signer(KEY), LoginSession.begin("ada", "hash")
    assert open_session(signer, sign_session(signer, session, life=60)) == session


def test_a_session_ends_after_its_lifetime() -> None:
    clock = Clock()
    signer = Signer(KEY, clock=clock)
    text = sign_session(signer, LoginSession.begin("ada", "hash"), life=60)
    clock.at += timedelta(seconds=59)
    assert open_session(signer, text) is not None
    clock.at += timedelta(seconds=1)
    assert open_session(signer, text) is None


def test_a_key_that_could_be_guessed_is_rejected() -> None:
    with pytest.raises(ConfigurationError, match="write at least 16 characters"):
        Signer("s")


def test_a_session_signed_with_another_key_is_rejected() -> None:
    text = sign_session(Signer(KEY), LoginSession.begin("ada", "hash"), life=60)
    assert open_session(Signer(KEY[::-1]), text) is None
    assert open_session(Signer(), text) is None
    assert open_session(Signer(KEY), text) is not None


def test_a_signature_for_one_purpose_is_invalid_for_another() -> None:
    signer = Signer(KEY)
    assert open_session(signer, make_token(signer, "ada", life=60)) is None


@pytest.mark.parametrize("text", [None, "", ".", "x", "x.y", "é.é", "e30.e30", "a" * 5000])
def test_an_invalid_signature_is_rejected_without_details(text: str | None) -> None:
    assert open_session(Signer(KEY), text) is None


def test_every_changed_character_is_detected() -> None:
    signer = Signer(KEY)
    text = sign_session(signer, LoginSession.begin("ada", "hash"), life=60)
    for at, dead_letter in enumerate(text[:-1]):
        changed = text[:at] + ("A" if dead_letter != "A" else "B") + text[at + 1 :]
        assert open_session(signer, changed) is None


def test_a_token_is_for_one_holder() -> None:
    signer = Signer(KEY)
    assert is_valid_token(signer, make_token(signer, "one", life=60), "one")
    assert not is_valid_token(signer, make_token(signer, "one", life=60), "two")
    assert not is_valid_token(signer, None, "one")
