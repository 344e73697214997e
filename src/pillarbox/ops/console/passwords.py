"""Passwords, kept as salted scrypt hashes that carry their own cost, so that a later release may raise it."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets

LOG_COST, BLOCK, LANES = 14, 8, 1
"""16 MiB and some 50 ms a try."""
_MEMORY = 64 * 1024 * 1024
_SALT, _KEY = 16, 32
SCHEME = "scrypt"


def hashed(password: str) -> str:
    """`scrypt$14$8$1$salt$key`, another one each time."""
    salt = secrets.token_bytes(_SALT)
    key = _derived(password, salt, LOG_COST, BLOCK, LANES)
    return "$".join([SCHEME, str(LOG_COST), str(BLOCK), str(LANES), _text(salt), _text(key)])


def matches(password: str, known: str) -> bool:
    """Whether `known` was made of this password. Raises ValueError for what `hashed` did not write."""
    cost, block, lanes, salt, key = _parts(known)
    return hmac.compare_digest(_derived(password, salt, cost, block, lanes), key)


def check(known: str) -> None:
    """Raises ValueError for what `hashed` did not write."""
    _parts(known)


def _parts(known: str) -> tuple[int, int, int, bytes, bytes]:
    parts = known.split("$")
    if len(parts) != 6 or parts[0] != SCHEME:
        raise ValueError("this is no hash of a password")
    cost, block, lanes = (int(figure) for figure in parts[1:4])
    # A line that somebody else wrote must not make a login take minutes.
    if not (10 <= cost <= 17 and 1 <= block <= 8 and 1 <= lanes <= 4):
        raise ValueError("this hash asks for more than a login is worth")
    return cost, block, lanes, base64.b64decode(parts[4], validate=True), base64.b64decode(parts[5], validate=True)


def _derived(password: str, salt: bytes, cost: int, block: int, lanes: int) -> bytes:
    memory = max(_MEMORY, 2 * 128 * block * 2**cost)
    return hashlib.scrypt(password.encode(), salt=salt, n=2**cost, r=block, p=lanes, maxmem=memory, dklen=_KEY)


def _text(raw: bytes) -> str:
    return base64.b64encode(raw).decode()
