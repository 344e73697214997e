"""Signatures of the Standard Webhooks specification: the relay signs, a receiver verifies.

The signed content is `id.timestamp.body`; the signature is an HMAC-SHA256 in base64, as in `v1,K5oZ…`. While a secret
is replaced, a message has one signature per secret, separated by spaces, and a receiver accepts any of them.
The signature covers the id, the time and the body, and no other header.
"""

from __future__ import annotations

import hmac
import time
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from typing import NamedTuple

from pillarbox.core.clock import Duration, seconds
from pillarbox.core.errors import ConfigurationError, WebhookVerificationError
from pillarbox.transports.webhook.headers import decoded

ID, TIMESTAMP, SIGNATURE = "webhook-id", "webhook-timestamp", "webhook-signature"
PREFIX = "whsec_"
VERSION = "v1"
_MIN_BYTES, _MAX_BYTES = 24, 64  # of the specification
_MAX_SIGNATURES = 16
"""The most signatures of one message that are compared."""


class VerifiedWebhook(NamedTuple):
    """What the signature of a request proves."""

    event_id: str
    """The same on every attempt: admit it to the inbox."""
    timestamp: int
    """When it was sent, in seconds since 1970."""
    body: bytes


def secret_key(secret: str) -> bytes:
    """The key of `whsec_…`. Raises ConfigurationError, which never quotes the secret."""
    if not secret.startswith(PREFIX):
        raise ConfigurationError(f"a secret of a webhook begins with {PREFIX}, followed by its bytes in base64")
    try:
        key = b64decode(secret.removeprefix(PREFIX), validate=True)
    except ValueError:
        raise ConfigurationError(f"what follows {PREFIX} in the secret of a webhook is not base64") from None
    if not _MIN_BYTES <= len(key) <= _MAX_BYTES:
        raise ConfigurationError(
            f"the secret of a webhook has {len(key)} bytes; it must have {_MIN_BYTES} to {_MAX_BYTES}: make one of "
            "32 random bytes"
        )
    return key


def signature_header(keys: Iterable[bytes], message_id: str, timestamp: int, body: bytes) -> str:
    """The header `webhook-signature`: one signature per key. `message_id` is the text of the header `webhook-id`."""
    signed = b"%s.%d.%s" % (message_id.encode(), timestamp, body)
    return " ".join([f"{VERSION},{b64encode(hmac.digest(key, signed, 'sha256')).decode()}" for key in keys])


class WebhookVerifier:
    """Verifies the webhooks that a receiver gets: `verify(headers, body)` with the body as it was received."""

    def __init__(self, *secrets: str, tolerance: Duration = "5m", now: Callable[[], float] = time.time) -> None:
        """
        secrets: `whsec_…`; several while a secret is replaced.
        tolerance: how far the time of sending may be from the time here; an older request may be a replayed one.

        Raises ConfigurationError for a secret that cannot be read, or if there is none.
        """
        if not secrets:
            raise ConfigurationError("a verifier needs at least one secret: without one it would accept every request")
        self._keys = [secret_key(secret) for secret in secrets]
        self._tolerance = seconds(tolerance, field="tolerance")
        self._now = now

    def verify(self, headers: Mapping[str, str], body: bytes) -> VerifiedWebhook:
        """What the signature proves. `headers`: those of the request, in any case. Raises WebhookVerificationError."""
        message_id, written, signatures = _read(headers, (ID, TIMESTAMP, SIGNATURE))
        signed_id = message_id.encode(errors="surrogatepass")  # servers decode bytes that are not UTF-8 to surrogates
        if not (written.isascii() and written.isdecimal() and len(written) <= 12):
            raise WebhookVerificationError(f"{TIMESTAMP} is not a number of seconds; the request is not a webhook")
        timestamp = int(written)
        age = self._now() - timestamp
        if abs(age) > self._tolerance:
            raise WebhookVerificationError(
                f"{TIMESTAMP} is {abs(age):.0f} s {'ago' if age > 0 else 'ahead'}, more than the tolerance of "
                f"{self._tolerance:g} s; check the clocks of sender and receiver"
            )
        signed = b"%s.%s.%s" % (signed_id, written.encode(), body)
        if not self._matches(signed, signatures):
            raise WebhookVerificationError(
                f"no signature in {SIGNATURE} matches; check that the secret is the sender's and the body is unchanged"
            )
        return VerifiedWebhook(decoded(message_id), timestamp, body)

    def _matches(self, signed: bytes, signatures: str) -> bool:
        given = [
            text.encode(errors="replace")
            for version, _, text in (one.partition(",") for one in signatures.split(" ")[:_MAX_SIGNATURES])
            if version == VERSION
        ]
        matches = False
        for key in self._keys:
            expected = b64encode(hmac.new(key, signed, sha256).digest())
            for one in given:  # all of them, in constant time: the time tells nothing about a secret
                matches |= hmac.compare_digest(expected, one)
        return matches


def _read(headers: Mapping[str, str], names: Sequence[str]) -> list[str]:
    found = {name.lower(): value for name, value in headers.items()}
    if missing := [name for name in names if not found.get(name)]:
        raise WebhookVerificationError(f"the request has no {missing[0]}; it is not a signed webhook")
    return [found[name] for name in names]
