"""Webhooks as an adapter: URL, settings and addresses. The driver is imported only when something is opened."""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from types import MappingProxyType
from typing import Any, ClassVar
from urllib.parse import quote, urlsplit

from pillarbox.core.clock import Duration
from pillarbox.core.errors import ConfigurationError, PermanentError
from pillarbox.core.message import Message
from pillarbox.core.payload import Size
from pillarbox.core.transport import Address, Transport
from pillarbox.plugins import TransportDiagnosis, TransportPlugin
from pillarbox.settings import ByteSize, Flag, Pairs, Span, Text, Texts, Whole, about, check_settings, setting
from pillarbox.settings.shared import ca_file_setting, connect_timeout_setting
from pillarbox.settings.urls import port_of
from pillarbox.transports.address_template import PLACEHOLDERS, AddressTemplate
from pillarbox.transports.webhook.guard import AddressGuard
from pillarbox.transports.webhook.signature import secret_key

_PORTS = {"http": 80, "https": 443}
_NOTHING: Mapping[str, str] = MappingProxyType({})
_NAME = re.compile("[!#$%&'*+.^_`|~0-9A-Za-z-]+")
HEADER_VALUE = re.compile("[\t -~]*")
_OWN = (
    "host",
    "content-length",
    "content-type",
    "content-encoding",
    "transfer-encoding",
    "connection",
    "expect",
    "te",
    "trailer",
    "upgrade",
    "idempotency-key",
    "webhook-id",
    "webhook-timestamp",
    "webhook-signature",
)
"""Headers that the transport sets itself, or that belong to the connection."""
_OWN_PREFIXES = ("ce-", "pillarbox-")


def _headers_setting(help: str) -> Any:
    return field(default_factory=lambda: _NOTHING, repr=False, hash=False, metadata=about(Pairs(), help, secret=True))


@dataclass(frozen=True, kw_only=True)
class WebhookOptions:
    """The settings of webhooks besides their URL."""

    python_name: ClassVar[str] = "WebhookTransport"

    connections_per_host: int = setting(20, Whole("connections"), "Connections to one host at most.")
    total_connections: int = setting(100, Whole("connections"), "Connections to all hosts together at most.")
    connect_timeout: Duration = connect_timeout_setting()
    secrets: Sequence[str] = setting(
        (),
        Texts(),
        "Secrets that sign each request, as in `whsec_…`: one, or two while a secret is replaced. Empty: not signed.",
        secret=True,
    )
    headers: Mapping[str, str] = _headers_setting("Headers of each request, such as `Authorization`.")
    allow_networks: Sequence[str] = setting(
        (), Texts(), "Networks that events may be sent to although they are not public, as in `10.0.0.0/8`."
    )
    ca_file: str = ca_file_setting()
    max_body: Size = setting("2 MiB", ByteSize(), "The largest body of a request. A larger event is dead-lettered.")
    max_retry_after: Duration = setting(
        "15m", Span(), "The longest wait that a receiver can ask for with `Retry-After`."
    )
    response_text: bool = setting(
        True, Flag(), "Show the beginning of a response in errors. `false` where receivers may repeat personal data."
    )

    def __post_init__(self) -> None:
        check_settings(self)
        check_keys(self.secrets)
        check_headers(self.headers)
        AddressGuard(self.allow_networks)
        if self.connections_per_host > self.total_connections:
            raise ConfigurationError(
                f"connections_per_host is {self.connections_per_host}, more than total_connections "
                f"({self.total_connections}); raise the latter"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookAddress(Address):
    """Where requests go: a path below the URL of the transport, or a whole URL. `repr` shows neither URL nor secret."""

    url: str = setting(
        "",
        Text(),
        "A path below the URL of the transport, or a whole URL. The path may contain `{event_type}`, "
        "`{aggregate_type}`, `{aggregate_id}` and `{key}`. Empty: the URL of the transport.",
        secret=True,
    )
    secrets: Sequence[str] = setting(
        (), Texts(), "Secrets that sign each request instead of those of the transport.", secret=True
    )
    headers: Mapping[str, str] = _headers_setting("Headers of each request besides those of the transport.")
    _template: AddressTemplate = field(init=False, repr=False, compare=False)
    keys: tuple[bytes, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_settings(self)
        object.__setattr__(self, "secrets", tuple(self.secrets))
        object.__setattr__(self, "headers", MappingProxyType(dict(self.headers)))
        object.__setattr__(self, "keys", check_keys(self.secrets))
        check_headers(self.headers)
        object.__setattr__(self, "_template", AddressTemplate.parse("the URL of a webhook", self.url))
        if self.is_absolute:
            HttpEndpoint.parse(self.url)
        elif self.url:
            _check_target(self.url)

    @property
    def is_absolute(self) -> bool:
        """Whether it is a whole URL, and not a path below the URL of the transport."""
        return "://" in self.url

    @property
    def fixed(self) -> bool:
        """Whether the URL is the same for every message."""
        return self._template.fixed is not None

    def url_for(self, message: Message) -> str:
        """The URL or path of this message; values are percent-encoded. Raises PermanentError if it cannot be made."""
        if self._template.fixed is not None:
            return self._template.fixed
        try:
            values: dict[str, Any] = {
                name: quote(value, safe="") for name in PLACEHOLDERS if (value := getattr(message, name)) is not None
            }
        except UnicodeEncodeError:
            raise PermanentError(f"the URL of event {message.event_id!r} cannot be made: a value is not text") from None
        url = self._template.name_for(message._replace(**values))
        if any(part in (".", "..") for part in re.split("[/?]", url)):
            raise PermanentError(f"the URL of event {message.event_id} would leave its path: a value in it is . or ..")
        return url


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpEndpoint:
    """A URL that requests go to. `str` shows scheme, host and port only: paths and queries may be secret."""

    scheme: str
    host: str
    port: int
    base: str = field(repr=False)
    """The whole URL."""

    @classmethod
    def parse(cls, url: str) -> HttpEndpoint:
        """Parse `https://host:port/path`. Raises ConfigurationError, which never quotes the URL."""
        try:
            parts = urlsplit(url)
            port, host = parts.port, parts.hostname
        except ValueError:
            raise ConfigurationError("host or port in the URL of a webhook cannot be read") from None
        if parts.scheme not in _PORTS or not host:
            raise ConfigurationError("the URL of a webhook begins with https:// or http:// and a host")
        if "@" in parts.netloc:
            raise ConfigurationError(
                "the URL of a webhook takes no user and password; set the header Authorization in headers"
            )
        if "{" in parts.netloc or "}" in parts.netloc:
            raise ConfigurationError(
                "the host of a webhook is fixed; only its path may contain {event_type} and others"
            )
        if not re.fullmatch(r"[0-9A-Za-z._:-]+", host):
            raise ConfigurationError("the host of a webhook has characters that no host has; write it in ASCII (xn--…)")
        if ":" not in host and not all(0 < len(label) < 64 for label in host.removesuffix(".").split(".")):
            raise ConfigurationError(
                "the host of a webhook has an empty part, or one of over 63 characters; correct it"
            )
        if re.fullmatch(r"[0-9.]+", host) and not _is_ipv4(host):
            raise ConfigurationError("the host of a webhook is not an IPv4 address; write four numbers, or a name")
        _check_target(url)
        return cls(scheme=parts.scheme, host=host, port=port_of(port, _PORTS[parts.scheme]), base=url)

    @property
    def origin(self) -> tuple[str, str, int]:
        """What requests that share connections have in common."""
        return self.scheme, self.host, self.port

    @property
    def authority(self) -> str:
        """Host and port, as in the header `Host`."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}"

    def join(self, path: str) -> str:
        """The URL of a path below this one. The query of this one stays, behind that of the path."""
        if not path:
            return self.base
        base, _, query = self.base.partition("?")
        joined = f"{base.rstrip('/')}/{path.lstrip('/')}"
        return f"{joined}{'&' if '?' in joined else '?'}{query}" if query else joined


def check_keys(secrets: Sequence[str]) -> tuple[bytes, ...]:
    """The keys of these secrets. Raises ConfigurationError."""
    if isinstance(secrets, str):
        raise ConfigurationError('the secrets of a webhook are a list: write ["whsec_…"]')
    return tuple(secret_key(one) for one in secrets)


def check_headers(headers: Mapping[str, str]) -> None:
    """Raise ConfigurationError for a header that cannot be sent; the error never quotes a value."""
    for name, value in headers.items():
        lower = name.lower()
        if not _NAME.fullmatch(name) or not HEADER_VALUE.fullmatch(value):
            raise ConfigurationError(
                f"the header {name[:40]!r} has characters that HTTP does not allow; write it in ASCII"
            )
        if lower in _OWN or lower.startswith(_OWN_PREFIXES):
            raise ConfigurationError(f"the header {name!r} is set by the transport; leave it out")


def tls_context(ca_file: str) -> ssl.SSLContext:
    """Verifies certificate and host name. Raises ConfigurationError if the file cannot be read."""
    context = ssl.create_default_context()
    if ca_file:
        try:
            context.load_verify_locations(cafile=ca_file)
        except (OSError, ssl.SSLError) as error:
            why = error.strerror or "it has no certificate"
            raise ConfigurationError(f"ca_file {ca_file!r} cannot be read: {why}") from None
    return context


def _is_ipv4(host: str) -> bool:
    try:
        IPv4Address(host)
    except ValueError:
        return False
    return True


def _check_target(text: str) -> None:
    if not re.fullmatch(r"[!-~]*", text) or "#" in text:
        raise ConfigurationError(
            "the URL of a webhook has a space, a # or a character that is not ASCII; percent-encode it"
        )


class WebhookPlugin(TransportPlugin):
    """`https://…` and `http://…`."""

    kind = "webhook"
    default_routing = "each event in a POST request to the URL of the transport"

    def open(self, url: str, options: Mapping[str, Any]) -> Transport:
        from pillarbox.transports.webhook.transport import WebhookTransport

        return WebhookTransport(url, **options)

    def address(self, destination: str, options: Mapping[str, Any]) -> Address:
        return WebhookAddress(**options)

    def target(self, name: str) -> Address:
        return WebhookAddress(url=f"/{quote(name, safe='{}')}")

    def diagnosis(
        self, url: str, options: Mapping[str, Any], addresses: Mapping[str, Address]
    ) -> TransportDiagnosis | None:
        from pillarbox.transports.webhook.diagnosis import WebhookDiagnosis

        return WebhookDiagnosis(
            url,
            addresses={name: one for name, one in addresses.items() if isinstance(one, WebhookAddress)},
            secrets=options.get("secrets", ()),
            allow_networks=options.get("allow_networks", ()),
            ca_file=options.get("ca_file", ""),
        )
