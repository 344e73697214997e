"""The settings of deliveries: all errors are reported at once, without secrets."""

from __future__ import annotations

from pathlib import Path

import pytest

from apps.notifications.delivery.settings import DeliverySettings, Gateway, MailServer
from pillarbox import ConfigurationError

GOOD = {
    "NOTIFICATIONS_SMTP": "smtp+starttls://app:p%40ss@mail.example.org:2525",
    "NOTIFICATIONS_FROM": "The Shop <noreply@example.org>",
    "NOTIFICATIONS_PUSH_URL": "https://push.example.org/send",
    "NOTIFICATIONS_SMS_URL": "https://sms.example.org/send?from=shop",
    "NOTIFICATIONS_SMS_TOKEN": "canary-token",
}


def refused(**changed: str) -> str:
    with pytest.raises(ConfigurationError) as error:
        DeliverySettings.from_environment(GOOD | changed)
    return str(error.value)


def test_every_variable_is_read() -> None:
    settings = DeliverySettings.from_environment(GOOD)
    assert settings.mail == MailServer(
        host="mail.example.org", port=2525, security="starttls", user="app", password="p@ss"
    )
    assert str(settings.sender) == "The Shop <noreply@example.org>"
    assert settings.push == Gateway(url="https://push.example.org/send")
    assert settings.sms == Gateway(url="https://sms.example.org/send?from=shop", token="canary-token")


def test_all_missing_variables_are_reported_at_once() -> None:
    with pytest.raises(ConfigurationError) as error:
        DeliverySettings.from_environment({})
    missing = {line.split()[0] for line in str(error.value).splitlines()}
    assert missing == {"NOTIFICATIONS_SMTP", "NOTIFICATIONS_FROM", "NOTIFICATIONS_PUSH_URL", "NOTIFICATIONS_SMS_URL"}


@pytest.mark.parametrize(
    ("url", "security", "port"),
    [("smtp://mail", "none", 25), ("smtp+starttls://mail", "starttls", 587), ("smtps://mail", "tls", 465)],
)
def test_each_scheme_has_its_default_port(url: str, security: str, port: int) -> None:
    server = MailServer.read(url)
    assert (server.security, server.port) == (security, port)


@pytest.mark.parametrize(
    ("variable", "value", "expected"),
    [
        ("NOTIFICATIONS_SMTP", "http://canary@mail", "must begin with smtp://"),
        ("NOTIFICATIONS_SMTP", "smtp://app:canary@mail.example.org", "in the clear"),
        ("NOTIFICATIONS_SMTP", "smtps://app@mail.example.org", "both a user and a password"),
        ("NOTIFICATIONS_SMTP", "smtps://app:canary@mail.example.org/inbox", "nothing may follow"),
        ("NOTIFICATIONS_SMTP", "smtps://app:canary@mail:many", "not a URL"),
        ("NOTIFICATIONS_FROM", "canary", "not a mail address"),
        ("NOTIFICATIONS_FROM", "canary@", "not a mail address"),
        ("NOTIFICATIONS_PUSH_URL", "ftp://app:canary@push", "https:// or http://"),
        ("NOTIFICATIONS_PUSH_URL", "canary", "not a URL"),
        ("NOTIFICATIONS_SMS_TOKEN", "canary\n", "not allowed in a header"),
    ],
)
def test_an_invalid_variable_is_named_without_its_value(variable: str, value: str, expected: str) -> None:
    message = refused(**{variable: value})
    assert message.startswith(f"{variable}: ")
    assert expected in message
    assert "canary" not in message


def test_a_login_without_tls_is_allowed_on_loopback() -> None:
    assert MailServer.read("smtp://app:secret@127.0.0.1").password == "secret"
    assert MailServer.read("smtp://app:secret@localhost").password == "secret"


def test_no_secret_is_in_a_repr() -> None:
    settings = DeliverySettings.from_environment(
        GOOD | {"NOTIFICATIONS_PUSH_URL": "https://app:canary@push.example.org/send?key=canary"}
    )
    assert "p@ss" not in repr(settings)
    assert "canary" not in repr(settings) + settings.push.label


def test_a_secret_can_be_read_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "smtp"
    file.write_text("smtps://app:secret@mail\n")
    without = {name: value for name, value in GOOD.items() if name != "NOTIFICATIONS_SMTP"}
    settings = DeliverySettings.from_environment(without | {"NOTIFICATIONS_SMTP_FILE": str(file)})
    assert settings.mail.password == "secret"
    missing = str(tmp_path / "missing")
    with pytest.raises(ConfigurationError, match=r"NOTIFICATIONS_SMTP: the file .*missing cannot be read"):
        DeliverySettings.from_environment(without | {"NOTIFICATIONS_SMTP_FILE": missing})
