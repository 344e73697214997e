"""The URL of a MariaDB store, and TLS: the certificate of a remote server is verified, unless the URL says otherwise.

mariadb://user:password@host:3306/database?ssl_mode=verify_identity&ssl_ca=/etc/ssl/db.pem
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from ipaddress import ip_address
from urllib.parse import parse_qsl, unquote, urlsplit

from pillarbox.core.errors import ConfigurationError
from pillarbox.settings.urls import check_one_login, port_of

SCHEMES = ("mariadb", "mysql")
VERIFIED = "verify_identity"
VERIFIED_CA = "verify_ca"
MODES = ("disabled", "required", VERIFIED_CA, VERIFIED)
ADVICE = (
    "beyond this machine the server's certificate is verified; give the server one for its name and, if your system "
    "does not trust who signed it, add ssl_ca=FILE to store.url, or say there what else you want: "
    "ssl_mode=required (encrypted, not verified) or ssl_mode=disabled"
)
"""What to do if the verification fails."""
_PARAMETERS = {"ssl_mode", "ssl_ca", "ssl_cert", "ssl_key", "unix_socket"}


@dataclass(frozen=True, slots=True, kw_only=True)
class MariaDBAddress:
    """Where a server is, and how to log in."""

    host: str
    port: int
    database: str
    user: str | None = field(repr=False)
    password: str = field(repr=False)
    unix_socket: str | None = None
    asked_mode: str | None = None
    ssl_ca: str | None = None
    ssl_cert: str | None = None
    ssl_key: str | None = None

    @property
    def where(self) -> str:
        """Host, port and database, without user and password: for messages."""
        return f"{self.unix_socket or f'{self.host}:{self.port}'}/{self.database}"

    @property
    def is_local(self) -> bool:
        """Whether the server is on this machine."""
        if self.unix_socket or self.host == "localhost":
            return True
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def mode(self) -> str:
        """How the connection is encrypted."""
        if self.asked_mode is not None:
            return self.asked_mode
        return "disabled" if self.is_local and not self.ssl_ca else VERIFIED

    def context(self) -> ssl.SSLContext | None:
        """TLS as the URL asks for it; None: no encryption. Raises ConfigurationError for a file that cannot be read."""
        if self.mode == "disabled":
            return None
        try:
            context = ssl.create_default_context(cafile=self.ssl_ca)
            if self.ssl_cert:
                # Without a password, OpenSSL would ask for that of an encrypted key on the terminal.
                context.load_cert_chain(self.ssl_cert, self.ssl_key, password="")
        except OSError as error:
            raise ConfigurationError(
                f"ssl_ca, ssl_cert or ssl_key of the store's URL cannot be read: {error}"
            ) from None
        if self.mode != VERIFIED:
            context.check_hostname = False
        if self.mode == "required":
            context.verify_mode = ssl.CERT_NONE
        return context


def address_of(url: str) -> MariaDBAddress:
    """Read a URL. Raises ConfigurationError, which never contains the password."""
    try:
        parts = urlsplit(url)
        port = port_of(parts.port, 3306)
    except ValueError:
        raise ConfigurationError("host or port in the store's URL cannot be read") from None
    if parts.scheme not in SCHEMES:
        raise ConfigurationError("the store's URL must begin with mariadb://, as in mariadb://app@db:3306/shop")
    if "@" in parts.path + parts.query + parts.fragment:
        # A / or ? or # in the password has cut the URL in two: what looks like a database is the password's end.
        raise ConfigurationError("user, password and host in the store's URL cannot be told apart; write / as %2F")
    login, _, server = parts.netloc.rpartition("@")
    check_one_login(login)
    if parts.fragment or "," in server:
        raise ConfigurationError("the store's URL names one server and ends after the database; write # as %23")
    database = unquote(parts.path.strip("/"))
    if not database or "/" in database:
        raise ConfigurationError("the store's URL must end with a database, as in mariadb://app@db:3306/shop")
    asked = dict(parse_qsl(parts.query))
    if unknown := sorted(asked.keys() - _PARAMETERS):
        raise ConfigurationError(
            f"{unknown[0]} is not a parameter of the store's URL: use {', '.join(sorted(_PARAMETERS))}"
        )
    mode = asked.get("ssl_mode")
    if mode is not None and mode not in MODES:
        raise ConfigurationError(f"ssl_mode={mode} in the store's URL is unknown: use {', '.join(MODES)}")
    return MariaDBAddress(
        host=parts.hostname or "localhost",
        port=port,
        database=database,
        user=unquote(parts.username) if parts.username else None,
        password=unquote(parts.password or ""),
        unix_socket=asked.get("unix_socket"),
        asked_mode=mode,
        ssl_ca=asked.get("ssl_ca"),
        ssl_cert=asked.get("ssl_cert"),
        ssl_key=asked.get("ssl_key"),
    )
