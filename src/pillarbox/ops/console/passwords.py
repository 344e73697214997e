"""Passwords as salted scrypt hashes. A hash contains its cost, so that a later release can raise it."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets

LOG_COST, BLOCK, LANES = 14, 8, 1
"""16 MiB and about 50 ms per attempt."""
_MEMORY = 64 * 1024 * 1024
_SALT, _KEY = 16, 32
SCHEME = "scrypt"


def hashed(password: str) -> str:
    """Return `scrypt$14$8$1$salt$key` with a random salt."""
    salt = secrets.token_bytes(_SALT)
    key = _derived(password, salt, LOG_COST, BLOCK, LANES)
    return "$".join([SCHEME, str(LOG_COST), str(BLOCK), str(LANES), _text(salt), _text(key)])


def matches(password: str, known: str) -> bool:
    """Whether `known` is the hash of this password. Raises ValueError for an invalid hash."""
    cost, block, lanes, salt, key = _parts(known)
    return hmac.compare_digest(_derived(password, salt, cost, block, lanes), key)


def check(known: str) -> None:
    """Raises ValueError for an invalid hash."""
    _parts(known)


def _parts(known: str) -> tuple[int, int, int, bytes, bytes]:
    parts = known.split("$")
    if len(parts) != 6 or parts[0] != SCHEME:
        raise ValueError("this is not the hash of a password")
    cost, block, lanes = (int(number) for number in parts[1:4])
    # A manipulated line must not make a login take minutes.
    if not (10 <= cost <= 17 and 1 <= block <= 8 and 1 <= lanes <= 4):
        raise ValueError("the cost of this hash is out of range")
    return cost, block, lanes, base64.b64decode(parts[4], validate=True), base64.b64decode(parts[5], validate=True)


def _derived(password: str, salt: bytes, cost: int, block: int, lanes: int) -> bytes:
    memory = max(_MEMORY, 2 * 128 * block * 2**cost)
    return hashlib.scrypt(password.encode(), salt=salt, n=2**cost, r=block, p=lanes, maxmem=memory, dklen=_KEY)


def _text(raw: bytes) -> str:
    return base64.b64encode(raw).decode()
