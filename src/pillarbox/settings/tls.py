"""TLS of a transport: which servers it trusts, and the certificate by which servers know it.

The classes of settings of transports inherit `TlsOptions`, so that `[transports.NAME]` has its keys. In Python, a
transport and a source take `tls=TlsOptions(…)`, or a context of the standard library.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any, Literal

from pillarbox.core.errors import ConfigurationError
from pillarbox.settings.definitions import setting
from pillarbox.settings.kinds import Choice, Text
from pillarbox.settings.shared import ca_file_setting

TlsVerify = Literal["full", "ca", "none"]


@dataclass(frozen=True, kw_only=True)
class TlsOptions:
    """TLS to a broker. The files are read when the transport is opened: restart the process to use renewed ones."""

    ca_file: str = ca_file_setting()
    cert_file: str = setting(
        "", Text(), "A file with the client's certificate and its chain (PEM), for brokers that ask for one."
    )
    key_file: str = setting(
        "", Text(), "A file with the client's private key (PEM, not encrypted). Empty: `cert_file` contains it."
    )
    verify: TlsVerify = setting(
        "full",
        Choice.of(TlsVerify),
        "What is verified over TLS. `full`: certificate and host name. `ca`: the certificate, for any host "
        "name. `none`: nothing; an attacker in the network can read and change everything.",
    )

    @classmethod
    def of(cls, options: TlsOptions) -> TlsOptions:
        """The part of a transport's options that concerns TLS."""
        return TlsOptions(**{name: getattr(options, name) for name in _NAMES})

    def context(self) -> ssl.SSLContext:
        """The context of a client. Raises ConfigurationError for a file that cannot be read."""
        if self.key_file and not self.cert_file:
            raise ConfigurationError("key_file is set, but cert_file is not: set both, or neither")
        with _reading("ca_file", self.ca_file):
            context = ssl.create_default_context(cafile=self.ca_file or None)
        if self.cert_file:
            with _reading("cert_file or key_file", self.cert_file):
                # Without a password, OpenSSL would ask for that of an encrypted key on the terminal.
                context.load_cert_chain(self.cert_file, self.key_file or None, password="")
        if self.verify != "full":
            context.check_hostname = False
        if self.verify == "none":
            context.verify_mode = ssl.CERT_NONE
        return context


Tls = ssl.SSLContext | TlsOptions | None
"""What a transport or a source takes; None: the defaults of `TlsOptions`, if the URL asks for TLS."""

_NAMES = tuple(one.name for one in fields(TlsOptions))


def tls_context(tls: Tls, scheme: str, *, secure: str) -> ssl.SSLContext | None:
    """The context for a URL of this scheme; None without TLS. `secure` is the scheme with TLS.

    Raises ConfigurationError if a file cannot be read, and if TLS is configured for a URL without TLS.
    """
    check_scheme(tls, scheme, secure=secure)
    if scheme != secure:
        return None
    return tls if isinstance(tls, ssl.SSLContext) else (tls or TlsOptions()).context()


def check_scheme(tls: Tls, scheme: str, *, secure: str) -> None:
    """Raise ConfigurationError if TLS is configured for a URL without TLS: it would silently not be used."""
    if scheme == secure or tls is None:
        return
    if isinstance(tls, ssl.SSLContext):
        raise ConfigurationError(f"a TLS context needs a URL that begins with {secure}://")
    default = TlsOptions()
    for name in _NAMES:
        if getattr(tls, name) != getattr(default, name):
            raise ConfigurationError(f"{name} needs a URL that begins with {secure}://, and this one has {scheme}://")


def tls_grouped(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options of `[transports.NAME]` as a transport takes them: those of TLS as `tls`.

    Raises ConfigurationError if `tls` is also given.
    """
    flat = {name: options[name] for name in _NAMES if name in options}
    rest = {name: value for name, value in options.items() if name not in flat}
    if not flat:
        return rest
    if "tls" in rest:
        raise ConfigurationError(f"tls and {next(iter(flat))} are both given; put {next(iter(flat))} into TlsOptions")
    return {**rest, "tls": TlsOptions(**flat)}


@contextmanager
def _reading(name: str, file: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:  # ssl.SSLError is one
        why = error.strerror or getattr(error, "reason", None) or str(error)
        raise ConfigurationError(
            f"{name} {file!r} cannot be read ({why}): use PEM files that exist, and a key without a passphrase"
        ) from None
