"""TLS for connections to PostgreSQL: the certificate of a remote server is verified, unless the URL says otherwise.

The default of the driver, `prefer`, sends the password to any server that responds, in clear text if the server asks.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Final, Literal
from urllib.parse import parse_qsl, urlsplit

from pillarbox.core.errors import ConfigurationError
from pillarbox.stores.postgres.hosts import address_of

VERIFIED: Final = "verify-full"
ADVICE = (
    "beyond this machine the server's certificate is verified; give the server one for its name and, if your system "
    "does not trust who signed it, add sslrootcert=FILE to store.url, or say there what else you want: "
    "sslmode=require (encrypted, not verified) or sslmode=disable"
)
"""What to do if the verification fails."""

_ROOT = Path("~/.postgresql/root.crt")
"""Where every client of PostgreSQL looks for the authorities it trusts."""


def hosts_beyond(url: str) -> list[str]:
    """The hosts of a URL that are not this machine; a URL without host leads to this machine."""
    return [host.name for host in address_of(url).hosts if not _is_here(host.name)]


def mode_of(url: str) -> str | None:
    """The `sslmode` that a URL asks for."""
    return _asked(url).get("sslmode")


def encryption(url: str) -> Literal["verify-full"] | ssl.SSLContext | None:
    """What the driver is told; None leaves it to the URL and, on this machine, to the driver.

    Raises ConfigurationError for a certificate of our own that cannot be read.
    """
    if mode_of(url) is not None or not hosts_beyond(url):
        return None
    asked = _asked(url)
    if "sslrootcert" in asked or _ROOT.expanduser().exists():
        return VERIFIED
    context = ssl.create_default_context()
    if "sslcert" in asked:
        try:
            context.load_cert_chain(asked["sslcert"], asked.get("sslkey"))
        except OSError as error:
            raise ConfigurationError(f"sslcert or sslkey of the store's URL cannot be read: {error}") from None
    return context


def _asked(url: str) -> Mapping[str, str]:
    return dict(parse_qsl(urlsplit(url).query))


def _is_here(host: str) -> bool:
    if host == "localhost" or host.startswith(("/", "@")):
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
