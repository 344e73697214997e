"""One mail to a real server: what it looks like, and whose fault it is when it is not taken."""

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
from apps.notifications.words import Audience, Channel
from pillarbox import PermanentError, RejectedError, UnavailableError
from tests.apps.notifications.delivery.outside import MailServer
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
    """A mail server that wants TLS and a login, with a certificate that this process trusts."""
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


def test_a_mail_has_its_text_and_an_id_made_of_the_event(email: Email, mail: MailServer) -> None:
    email.send(request(body="Grüße,\nthe shop"), user())
    [got] = mail.mails
    assert (got.id, got.to, got.sender) == ("<d1@example.org>", ["ada@example.org"], "noreply@example.org")
    assert (got.subject, got.body) == ("Order received", "Grüße,\nthe shop")


def test_a_title_cannot_smuggle_a_header_in(email: Email, mail: MailServer) -> None:
    email.send(request(title="Hello\r\nBcc: mallory@example.org"), user(name="Ada\r\nBcc: mallory@example.org"[:3]))
    [got] = mail.mails
    assert (got.subject, got.to) == ("Hello Bcc: mallory@example.org", ["ada@example.org"])


@pytest.mark.parametrize(
    "address", [None, "", "nobody", "a b@example.org", "ada@example.org\r\nBcc: mallory@example.org"]
)
def test_an_address_that_is_none_is_given_up_at_once(email: Email, mail: MailServer, address: str | None) -> None:
    with pytest.raises(PermanentError, match="user 7"):
        email.send(request(), user(address))
    assert mail.mails == []


@pytest.mark.parametrize(
    ("said", "verdict"),
    [
        ("550 no such user", PermanentError),
        ("450 come back later", RejectedError),
        ("421 closing", UnavailableError),
    ],
)
def test_what_the_server_says_of_a_recipient_decides(
    email: Email, mail: MailServer, said: str, verdict: type[Exception]
) -> None:
    mail.refuse(ada=said)
    with pytest.raises(verdict, match=said) as refusal:
        email.send(request(), user())
    assert type(refusal.value) is verdict
    assert "ada@" not in str(refusal.value)  # errors are shown to many


def test_a_server_that_is_not_there_is_nobodys_fault() -> None:
    nowhere = Email(MailServerAt(host="127.0.0.1", port=free_port()), sender=SENDER)
    with pytest.raises(UnavailableError, match="takes no mail: ConnectionRefusedError"):
        nowhere.send(request(), user())


def test_over_starttls_with_a_login(secure: MailServer) -> None:
    server = MailServerAt(host="127.0.0.1", port=secure.port, security="starttls", user="app", password="secret")
    Email(server, sender=SENDER).send(request(), user())
    assert [got.id for got in secure.mails] == ["<d1@example.org>"]


def test_a_refused_login_kills_no_mail_and_does_not_tell_the_password(secure: MailServer) -> None:
    server = MailServerAt(host="127.0.0.1", port=secure.port, security="starttls", user="app", password="canary")
    with pytest.raises(UnavailableError, match="refused the login with 535") as refusal:
        Email(server, sender=SENDER).send(request(), user())
    assert "canary" not in str(refusal.value)
    assert secure.mails == []


def test_a_certificate_that_nobody_vouches_for_is_refused(secure: MailServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    server = MailServerAt(host="127.0.0.1", port=secure.port, security="starttls", user="app", password="secret")
    with pytest.raises(UnavailableError, match="CERTIFICATE_VERIFY_FAILED"):
        Email(server, sender=SENDER).send(request(), user())
    assert secure.mails == []
