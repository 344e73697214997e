"""A receiver accepts what the sender signed, and nothing else."""

import base64
import hashlib
import hmac

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pillarbox.core.errors import ConfigurationError, WebhookVerificationError
from pillarbox.transports.webhook import WebhookVerifier
from pillarbox.transports.webhook.headers import encoded_id
from pillarbox.transports.webhook.signature import secret_key, signature_header

# The secret, the message and the signature that the reference libraries of Standard Webhooks use in their tests.
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
REFERENCE_ID, REFERENCE_TIME = "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330
REFERENCE_BODY = b'{"test": 2432232314}'
REFERENCE_SIGNATURE = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
OTHER = "whsec_" + base64.b64encode(bytes(range(32))).decode()
NOW = 1_800_000_000


def signed(body: bytes, *secrets: str, message_id: str = "evt-1", at: int = NOW) -> dict[str, str]:
    """The headers of a request, computed without the code under test."""
    signatures = []
    for secret in secrets or (SECRET,):
        key = base64.b64decode(secret.removeprefix("whsec_"))
        digest = hmac.new(key, f"{message_id}.{at}.".encode() + body, hashlib.sha256).digest()
        signatures.append("v1," + base64.b64encode(digest).decode())
    return {"webhook-id": message_id, "webhook-timestamp": str(at), "webhook-signature": " ".join(signatures)}


def verifier(*secrets: str, at: float = NOW) -> WebhookVerifier:
    return WebhookVerifier(*(secrets or (SECRET,)), now=lambda: at)


def refusal(headers: dict[str, str], body: bytes, *secrets: str, at: float = NOW) -> str:
    with pytest.raises(WebhookVerificationError) as caught:
        verifier(*secrets, at=at).verify(headers, body)
    return str(caught.value)


def test_the_signature_is_that_of_the_reference_libraries() -> None:
    key = secret_key(SECRET)
    assert signature_header([key], REFERENCE_ID, REFERENCE_TIME, REFERENCE_BODY) == REFERENCE_SIGNATURE


def test_a_request_of_the_reference_libraries_is_accepted() -> None:
    headers = {
        "Webhook-Id": REFERENCE_ID,
        "Webhook-Timestamp": str(REFERENCE_TIME),
        "Webhook-Signature": REFERENCE_SIGNATURE,
    }
    verified = verifier(at=REFERENCE_TIME + 10).verify(headers, REFERENCE_BODY)
    assert verified == (REFERENCE_ID, REFERENCE_TIME, REFERENCE_BODY)


@given(body=st.binary(max_size=200), message_id=st.text(min_size=1, max_size=50), at=st.integers(0, 2**33))
def test_what_is_signed_is_verified_whatever_id_time_and_body(body: bytes, message_id: str, at: int) -> None:
    try:
        written = encoded_id(message_id)
    except UnicodeEncodeError:
        return
    assert written.isascii()
    assert "." not in written
    headers = {
        "webhook-id": written,
        "webhook-timestamp": str(at),
        "webhook-signature": signature_header([secret_key(SECRET)], written, at, body),
    }
    assert headers == signed(body, message_id=written, at=at)
    assert verifier(at=at).verify(headers, body) == (message_id, at, body)


@given(body=st.binary(min_size=1, max_size=100), position=st.integers(0), change=st.integers(1, 255))
def test_a_changed_byte_is_detected(body: bytes, position: int, change: int) -> None:
    changed = bytearray(body)
    changed[position % len(body)] ^= change
    assert "no signature" in refusal(signed(body), bytes(changed))


@given(body=st.binary(max_size=50), cut=st.integers(0, 50), more=st.binary(min_size=1, max_size=5))
def test_a_longer_or_shorter_body_is_detected(body: bytes, cut: int, more: bytes) -> None:
    assert "no signature" in refusal(signed(body), body + more)
    if body[:cut] != body:
        assert "no signature" in refusal(signed(body), body[:cut])


@given(name=st.sampled_from(["webhook-id", "webhook-timestamp"]), digit=st.integers(0, 9))
def test_a_changed_id_or_time_is_detected(name: str, digit: int) -> None:
    headers = signed(b"body", message_id="evt-11")
    changed = headers[name][:-1] + str(digit)
    if changed != headers[name]:
        assert "no signature" in refusal(headers | {name: changed}, b"body")


def test_what_belongs_to_the_time_cannot_be_moved_to_the_body_or_the_id() -> None:
    headers = signed(b"5.rest", message_id="a", at=NOW)
    assert "not a number" in refusal(headers | {"webhook-timestamp": f"{NOW}.5"}, b"rest")
    assert "no signature" in refusal(headers | {"webhook-id": "a.1"}, b"5.rest")


def test_a_request_with_two_signatures_is_accepted_by_receivers_of_either_secret() -> None:
    headers = signed(b"body", SECRET, OTHER)
    assert " v1," in headers["webhook-signature"]
    for secrets in ([SECRET], [OTHER], [OTHER, SECRET]):
        assert verifier(*secrets).verify(headers, b"body").event_id == "evt-1"


def test_a_receiver_with_two_secrets_accepts_either_of_them() -> None:
    for secret in (SECRET, OTHER):
        assert verifier(SECRET, OTHER).verify(signed(b"body", secret), b"body").body == b"body"


def test_another_secret_and_another_version_are_rejected() -> None:
    headers = signed(b"body")
    assert "no signature" in refusal(headers, b"body", OTHER)
    older = headers["webhook-signature"].replace("v1,", "v1a,")
    assert "no signature" in refusal(headers | {"webhook-signature": older}, b"body")
    assert verifier().verify(headers | {"webhook-signature": f"{older} {headers['webhook-signature']}"}, b"body")


@pytest.mark.parametrize("age", [301, -301, 10**6])
def test_a_request_that_is_too_old_or_from_the_future_is_rejected(age: int) -> None:
    assert "tolerance" in refusal(signed(b"body", at=NOW - age), b"body")


@pytest.mark.parametrize("age", [0, 299, -299])
def test_a_request_within_the_tolerance_is_accepted(age: int) -> None:
    assert verifier().verify(signed(b"body", at=NOW - age), b"body").timestamp == NOW - age


@pytest.mark.parametrize("name", ["webhook-id", "webhook-timestamp", "webhook-signature"])
def test_a_request_without_one_of_the_headers_is_rejected(name: str) -> None:
    headers = signed(b"body")
    del headers[name]
    assert name in refusal(headers, b"body")


@pytest.mark.parametrize("written", ["", "now", "-5", "1e9", "٣", "9" * 30, "NaN"])
def test_a_time_that_is_no_number_is_rejected(written: str) -> None:
    assert "webhook-timestamp" in refusal(signed(b"body") | {"webhook-timestamp": written}, b"body")


def test_a_signature_that_is_not_ascii_is_rejected() -> None:
    assert "no signature" in refusal(signed(b"body") | {"webhook-signature": "v1,подпись"}, b"body")


@pytest.mark.parametrize("name", ["webhook-id", "webhook-signature"])
@pytest.mark.parametrize("bad", [chr(0xDCFF), chr(0xD800)])
def test_bytes_that_are_not_text_are_rejected(name: str, bad: str) -> None:
    """aiohttp decodes such a byte of a header to a lone surrogate."""
    headers = signed(b"body")
    assert "no signature" in refusal(headers | {name: f"v1,{bad}"}, b"body")


@pytest.mark.parametrize("secret", ["", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_", "whsec_%%%%", "whsec_YWJj"])
def test_an_invalid_secret_is_rejected_and_not_quoted(secret: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        WebhookVerifier(secret)
    assert not secret or secret not in str(caught.value).replace("whsec_,", "")


def test_a_verifier_needs_a_secret() -> None:
    with pytest.raises(ConfigurationError, match="at least one secret"):
        WebhookVerifier()


def test_neither_verifier_nor_error_show_a_secret() -> None:
    shown = repr(verifier()) + refusal(signed(b"body"), b"other")
    assert SECRET.removeprefix("whsec_") not in shown
