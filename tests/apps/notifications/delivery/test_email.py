"""One mail to a real server: its format, and the error for each rejection."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from email.headerregistry import Address
from pathlib import Path

import pytest

from apps.notifications.delivery.email import Email
from apps.notifications.delivery.log import Recipient
from apps.notifications.delivery.request import DeliveryRequest
from apps.notifications.delivery.settings import MailServer as MailServerAt
from apps.notifications.domain import Audience, Channel
from pillarbox import PermanentError, RejectedError, UnavailableError
from tests.apps.notifications.delivery.servers import MailServer
from tests.servers.ports import free_port

SENDER = Address(display_name="Shop", addr_spec="noreply@example.org")


def request(delivery_id: str = "d1", title: str = "Order received", body: str = "Thank you.") -> DeliveryRequest:
    return DeliveryRequest(
        delivery_id=delivery_id,
        channel=Channel.EMAIL,
        audience=Audience.CUSTOMER,
        notification_id=1,
        user_id=7,
        event_type="ORDER_CREATED",
        title=title,
        body=body,
    )


def user(email: str | None = "ada@example.org", name: str = "Ada") -> Recipient:
    return Recipient(user_id=7, name=name, email=email, phone=None, push_token=None)


@pytest.fixture
def email(mail: MailServer) -> Email:
    return Email(MailServerAt(host="127.0.0.1", port=mail.port), sender=SENDER)


@pytest.fixture
def secure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MailServer]:
    """A mail server that requires TLS and a login, with a certificate that this process trusts."""
    server = MailServer(tmp_path / "secure")
    (server.folder / "login").write_text("app:secret")
    certify = (
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1"
    )
    subprocess.run(
        [*certify.split(), "-keyout", "key.pem", "-out", "cert.pem"],
        cwd=server.folder,
        capture_output=True,
        check=True,
    )
    monkeypatch.setenv("SSL_CERT_FILE", str(server.folder / "cert.pem"))
    server.start()
    yield server
    server.close()


def test_a_mail_has_its_text_and_a_message_id_derived_from_the_event(email: Email, mail: MailServer) -> None:
    email.send(request(body="Grüße,\nthe shop"), user())
    [got] = mail.mails
    assert (got.id, got.to, got.sender) == ("<d1@example.org>", ["ada@example.org"], "noreply@example.org")
    assert (got.subject, got.body) == ("Order received", "Grüße,\nthe shop")


def test_a_title_cannot_inject_a_header(email: Email, mail: MailServer) -> None:
    email.send(request(title="Hello\r\nBcc: mallory@example.org"), user(name="Ada\r\nBcc: mallory@example.org"[:3]))
    [got] = mail.mails
    assert (got.subject, got.to) == ("Hello Bcc: mallory@example.org", ["ada@example.org"])


@pytest.mark.parametrize("address", [None, "", "ada", "a b@example.org", "ada@example.org\r\nBcc: mallory@example.org"])
def test_an_invalid_address_is_a_permanent_error(email: Email, mail: MailServer, address: str | None) -> None:
    with pytest.raises(PermanentError, match="user 7"):
        email.send(request(), user(address))
    assert mail.mails == []


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        ("550 no such user", PermanentError),
        ("450 come back later", RejectedError),
        ("421 closing", UnavailableError),
    ],
)
def test_the_reply_about_a_recipient_determines_the_error(
    email: Email, mail: MailServer, reply: str, error: type[Exception]
) -> None:
    mail.refuse(ada=reply)
    with pytest.raises(error, match=reply) as refusal:
        email.send(request(), user())
    assert type(refusal.value) is error
    assert "ada@" not in str(refusal.value)  # operators see errors


def test_a_server_that_does_not_respond_is_unavailable() -> None:
    nowhere = Email(MailServerAt(host="127.0.0.1", port=free_port()), sender=SENDER)
    with pytest.raises(UnavailableError, match="is unavailable: ConnectionRefusedError"):
        nowhere.send(request(), user())


def test_mail_is_sent_over_starttls_with_a_login(secure: MailServer) -> None:
    server = MailServerAt(host="127.0.0.1", port=secure.port, security="starttls", user="app", password="secret")
    Email(server, sender=SENDER).send(request(), user())
    assert [got.id for got in secure.mails] == ["<d1@example.org>"]


def test_a_rejected_login_is_unavailable_and_does_not_reveal_the_password(secure: MailServer) -> None:
    server = MailServerAt(host="127.0.0.1", port=secure.port, security="starttls", user="app", password="canary")
    with pytest.raises(UnavailableError, match="rejected the login with 535") as refusal:
        Email(server, sender=SENDER).send(request(), user())
    assert "canary" not in str(refusal.value)
    assert secure.mails == []


def test_an_untrusted_certificate_is_rejected(secure: MailServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    server = MailServerAt(host="127.0.0.1", port=secure.port, security="starttls", user="app", password="secret")
    with pytest.raises(UnavailableError, match="CERTIFICATE_VERIFY_FAILED"):
        Email(server, sender=SENDER).send(request(), user())
    assert secure.mails == []
