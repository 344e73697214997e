"""The settings of mail server and gateways, read from the environment and validated before anything starts.

Invariant: no error, log line or repr contains a password or a token.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.errors import MessageError
from email.headerregistry import Address
from email.utils import parseaddr
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import Literal, Self, TypeVar
from urllib.parse import SplitResult, unquote, urlsplit

from pillarbox import ConfigurationError

T = TypeVar("T")
Security = Literal["none", "starttls", "tls"]

_SECURITY: dict[str, Security] = {"smtp": "none", "smtp+starttls": "starttls", "smtps": "tls"}
_PORTS: dict[Security, int] = {"none": 25, "starttls": 587, "tls": 465}


@dataclass(frozen=True, slots=True, kw_only=True)
class MailServer:
    """The mail server that accepts our mails."""

    host: str
    port: int
    security: Security = "none"
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    timeout: float = 10.0
    """Seconds for each SMTP command."""

    @classmethod
    def read(cls, url: str) -> Self:
        """`smtp://host:25`, `smtp+starttls://user:password@host:587` or `smtps://…`. Raises ConfigurationError."""
        parts, host, port = _split(url)
        if parts.scheme not in _SECURITY:
            raise ConfigurationError("it must begin with smtp://, smtp+starttls:// or smtps://")
        security = _SECURITY[parts.scheme]
        if parts.path.strip("/") or parts.query or parts.fragment:
            raise ConfigurationError("nothing may follow the host and the port")
        user, password = (part and unquote(part) for part in (parts.username, parts.password))
        if bool(user) != bool(password):
            raise ConfigurationError("give both a user and a password, or neither")
        if password and security == "none" and not _is_loopback(host):
            raise ConfigurationError(
                "smtp:// would send the password in the clear; write smtp+starttls:// or smtps:// instead"
            )
        return cls(host=host, port=port or _PORTS[security], security=security, user=user, password=password)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gateway:
    """A service that accepts one message per request: push, SMS."""

    url: str = field(repr=False)
    token: str | None = field(default=None, repr=False)
    """Sent as `Authorization: Bearer …`."""
    timeout: float = 10.0

    @property
    def label(self) -> str:
        """Host and port, for logs: without user, password and query."""
        parts = urlsplit(self.url)
        return f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname)

    @classmethod
    def read(cls, url: str, *, token: str | None = None) -> Self:
        """`https://gateway/send`. Raises ConfigurationError."""
        parts, _, _ = _split(url)
        if parts.scheme not in ("http", "https"):
            raise ConfigurationError("it must begin with https:// or http://")
        return cls(url=url, token=token)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliverySettings:
    """The settings of all channels."""

    mail: MailServer
    sender: Address
    push: Gateway
    sms: Gateway

    @classmethod
    def from_environment(cls, variables: Mapping[str, str]) -> Self:
        """Raises a ConfigurationError that names every missing or invalid variable."""
        given = _Given(variables)
        push_token = given.optional("NOTIFICATIONS_PUSH_TOKEN", read_token)
        sms_token = given.optional("NOTIFICATIONS_SMS_TOKEN", read_token)
        mail = given.required("NOTIFICATIONS_SMTP", MailServer.read, "smtp+starttls://user:password@mail.example.org")
        sender = given.required("NOTIFICATIONS_FROM", read_sender, "Example <noreply@example.org>")
        push = given.required(
            "NOTIFICATIONS_PUSH_URL", partial(Gateway.read, token=push_token), "https://push.example.org/send"
        )
        sms = given.required(
            "NOTIFICATIONS_SMS_URL", partial(Gateway.read, token=sms_token), "https://sms.example.org/send"
        )
        if given.errors or mail is None or sender is None or push is None or sms is None:
            raise ConfigurationError("\n".join(given.errors))
        return cls(mail=mail, sender=sender, push=push, sms=sms)


def read_sender(text: str) -> Address:
    """`noreply@example.org` or `Example <noreply@example.org>`. Raises ConfigurationError."""
    name, address = parseaddr(text)
    try:
        sender = Address(display_name=name, addr_spec=address)
    except (MessageError, ValueError, IndexError):
        sender = Address()
    if not sender.username or not sender.domain:
        raise ConfigurationError("not a mail address")
    return sender


def read_token(text: str) -> str:
    """Validate a token for a header. Raises ConfigurationError."""
    if not (text.isascii() and text.isprintable() and " " not in text):
        raise ConfigurationError("it contains characters that are not allowed in a header")
    return text


class _Given:
    """Reads variables, or the files that `…_FILE` names; collects all errors."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = variables
        self.errors: list[str] = []

    def required(self, variable: str, read: Callable[[str], T], example: str) -> T | None:
        """The value of a required variable; None if there is an error."""
        if not (self._variables.get(variable) or self._variables.get(f"{variable}_FILE")):
            self.errors.append(f"{variable} is not set; for example {example}")
        return self.optional(variable, read)

    def optional(self, variable: str, read: Callable[[str], T]) -> T | None:
        """The value of an optional variable; None if it is not set or invalid."""
        try:
            text = self._variables.get(variable) or self._from_file(variable)
            return read(text) if text else None
        except ConfigurationError as error:
            self.errors.append(f"{variable}: {error}")
            return None

    def _from_file(self, variable: str) -> str | None:
        if not (path := self._variables.get(f"{variable}_FILE")):
            return None
        try:
            text = Path(path).read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"the file {path} cannot be read ({type(error).__name__})") from None
        if not text:
            raise ConfigurationError(f"the file {path} is empty")
        return text


def _split(url: str) -> tuple[SplitResult, str, int | None]:
    """The parts of a URL, its host and its port. Errors do not contain the URL, because it may contain a password."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise ConfigurationError("not a URL; encode special characters of the password, for example @ as %40") from None
    if not parts.scheme or not host:
        raise ConfigurationError("not a URL; it needs a scheme and a host")
    return parts, host, port


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
