"""Signed values with an expiry, kept by the browser.

A session names a user and ends when the password changes; a token proves that a form comes from a page of the console;
a notice is the message of an action for the next page.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import secrets
from dataclasses import dataclass
from typing import Any

from pillarbox.core.clock import Clock, SystemClock
from pillarbox.core.errors import ConfigurationError
from pillarbox.ops.settings.kinds import Secret

SESSION, NOTICE = "pillarbox_session", "pillarbox_notice"
_NOTICE_LIFE = 60.0
_LONGEST = 4096


class Signer:
    """Signs values for a purpose and a limited time."""

    def __init__(self, key: str = "", *, clock: Clock | None = None) -> None:
        """key: '' generates one for this process. Raises ConfigurationError if it is too short."""
        if key:
            try:
                Secret().read(key)
            except ValueError as error:
                raise ConfigurationError(f"the secret that signs cookies is too short: {error}") from None
        self._key = hashlib.sha256(key.encode() or secrets.token_bytes(32)).digest()
        self._clock = clock or SystemClock()

    def sign(self, purpose: str, value: object, *, life: float) -> str:
        """Return a signed text without blanks, which `open` accepts for `life` seconds."""
        body = json.dumps([self._clock.now().timestamp() + life, value], separators=(",", ":")).encode()
        return f"{_text(body)}.{_text(self._seal(purpose, body))}"

    def open(self, purpose: str, text: str | None) -> Any:
        """Return the value; None if the signature is invalid for this purpose, or has expired."""
        if not text or len(text) > _LONGEST:
            return None
        body, _, seal = text.partition(".")
        try:
            raw = _bytes(body)
            if not hmac.compare_digest(self._seal(purpose, raw), _bytes(seal)):
                return None
        except (binascii.Error, ValueError):
            return None
        end, value = json.loads(raw)
        return value if end > self._clock.now().timestamp() else None

    def _seal(self, purpose: str, body: bytes) -> bytes:
        return hmac.new(self._key, purpose.encode() + b"\0" + body, "sha256").digest()


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginSession:
    """A session of a user."""

    name: str
    mark: str
    """A hash of the password's hash: a new password ends the session."""
    number: str
    """Random; the tokens of its forms are bound to it."""

    @classmethod
    def begin(cls, name: str, known: str) -> LoginSession:
        return cls(name=name, mark=mark_of(known), number=secrets.token_urlsafe(12))


def mark_of(known: str) -> str:
    return hashlib.sha256(b"mark\0" + known.encode()).hexdigest()[:16]


def sign_session(signer: Signer, session: LoginSession, *, life: float) -> str:
    return signer.sign("session", [session.name, session.mark, session.number], life=life)


def open_session(signer: Signer, text: str | None) -> LoginSession | None:
    opened = signer.open("session", text)
    if opened is None:
        return None
    name, mark, number = opened
    return LoginSession(name=name, mark=mark, number=number)


def make_token(signer: Signer, holder: str, *, life: float) -> str:
    """Return the token of the forms of one holder: the number of a session, or a name without sessions."""
    return signer.sign("form", holder, life=life)


def is_valid_token(signer: Signer, token: str | None, holder: str) -> bool:
    return bool(signer.open("form", token) == holder)


def sign_notice(signer: Signer, message: str) -> str:
    return signer.sign("notice", message[:500], life=_NOTICE_LIFE)


def open_notice(signer: Signer, text: str | None) -> str:
    return str(signer.open("notice", text) or "")


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
