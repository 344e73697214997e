"""PILLARBOX of settings.py, with the names of pillarbox.toml; the store is always a database of DATABASES.

    PILLARBOX = {"database": "default", "store": {"prefix": "outbox_"}, "transports": {…}, "relay": {…}}

Flags take precedence over PILLARBOX_… variables, those over settings.py. No file is read. The address of the store
comes from the connection, never from a variable: a test run works on the test database.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path as File
from typing import Any, cast
from urllib.parse import quote, urlencode

from django.conf import settings as django_settings
from django.core.signals import setting_changed
from django.db import DEFAULT_DB_ALIAS, connections
from django.utils.connection import ConnectionDoesNotExist

from pillarbox.connections.drivers.django import DIALECTS
from pillarbox.core.errors import ConfigurationError
from pillarbox.ops.settings import Settings
from pillarbox.ops.settings.origin import Given, Origin, Path

PLACE = "PILLARBOX of settings.py"
_DATABASE = "database"
_POSTGRES_OPTIONS = (
    "passfile",
    "service",
    "servicefile",
    "sslcert",
    "sslcrl",
    "sslkey",
    "sslmode",
    "sslpassword",
    "sslrootcert",
    "target_session_attrs",
)
"""The OPTIONS of a connection to PostgreSQL that also apply to the relay's."""
_SCRIPT_URLS = {
    "postgresql": "postgresql://localhost/postgres",
    "sqlite": "sqlite:///unused.db",
    "mysql": "mariadb://localhost/mysql",
}


def load_settings(
    using: str | None = None, flags: Mapping[str, str] | None = None, spelt: Mapping[str, str] | None = None
) -> Settings:
    """The settings with the store of a database; None: the one that PILLARBOX names. Raises ConfigurationError."""
    alias = using or database()
    return _load(store_url(alias), f"DATABASES[{alias!r}]", flags, spelt)


def table_settings(using: str) -> Settings:
    """The settings for what needs the names of the tables, and not the address. Raises ConfigurationError."""
    return _load(_SCRIPT_URLS[_vendor(using)], f"DATABASES[{using!r}]", None, None)


def database() -> str:
    """The alias of the database with the tables that relay, admin and commands work on."""
    return str(_written().get(_DATABASE, DEFAULT_DB_ALIAS))


def store_url(alias: str) -> str:
    """The address of a database for our own connections. Raises ConfigurationError."""
    vendor, given = _vendor(alias), connections[alias].settings_dict
    if vendor == "sqlite":
        return _sqlite_url(alias, str(given["NAME"]))
    parameters = _postgres_parameters(given) if vendor == "postgresql" else _mariadb_parameters(alias, given)
    scheme = "postgresql" if vendor == "postgresql" else "mariadb"
    query = f"?{urlencode(parameters)}" if parameters else ""
    return f"{scheme}://{_login(given)}{_hosts(alias, given)}/{quote(str(given['NAME'] or ''), safe='')}{query}"


@cache
def _written() -> Mapping[str, Any]:
    written: object = getattr(django_settings, "PILLARBOX", {})
    if not isinstance(written, Mapping):
        raise ConfigurationError(f"{PLACE} is a {type(written).__name__}: write a dict")
    table = cast("Mapping[str, Any]", written)
    _check_names(table, PLACE)
    return table


def _check_names(table: Mapping[Any, Any], where: str) -> None:
    for name, value in table.items():
        if not isinstance(name, str):
            raise ConfigurationError(f"{where} has the key {name!r}, which is not text: write the name of a setting")
        if isinstance(value, Mapping):
            _check_names(cast("Mapping[str, Any]", value), f"{where}, {name}")


def _forget(*, setting: str, **_: object) -> None:
    if setting == "PILLARBOX":
        _written.cache_clear()


setting_changed.connect(_forget, dispatch_uid="pillarbox.settings")


def _load(url: str, origin: str, flags: Mapping[str, str] | None, spelt: Mapping[str, str] | None) -> Settings:
    written = {name: value for name, value in _written().items() if name != _DATABASE}
    fixed: dict[Path, Given] = {("store", "url"): Given(url, Origin("file", origin))}
    return Settings.of(written, PLACE, os.environ, flags, spelt, fixed=fixed)


def _vendor(alias: str) -> str:
    try:
        vendor: str = connections[alias].vendor
    except ConnectionDoesNotExist:
        known = ", ".join(connections)
        raise ConfigurationError(f"DATABASES has no database {alias!r}; there are {known}") from None
    if vendor not in DIALECTS:
        engine = connections[alias].settings_dict["ENGINE"]
        raise ConfigurationError(
            f"DATABASES[{alias!r}] has the ENGINE {engine}, which Pillarbox does not support: use PostgreSQL, MariaDB "
            "or SQLite, or name another database in PILLARBOX['database']"
        )
    return vendor


def _sqlite_url(alias: str, name: str) -> str:
    if name == ":memory:" or "mode=memory" in name or not name:
        raise ConfigurationError(
            f"DATABASES[{alias!r}] is a SQLite database in memory, which belongs to one connection, so that neither a "
            f"relay nor the admin can open it: name a file; for tests in DATABASES[{alias!r}]['TEST']['NAME']"
        )
    if name.startswith("file:"):
        raise ConfigurationError(f"DATABASES[{alias!r}] has the NAME {name!r}: write a path instead of a URI")
    return f"sqlite:///{File(name).absolute()}"


def _postgres_parameters(given: Mapping[str, Any]) -> dict[str, str]:
    options: Mapping[str, Any] = given.get("OPTIONS") or {}
    parameters = {name: str(options[name]) for name in _POSTGRES_OPTIONS if options.get(name)}
    if _socket(given):
        parameters["host"] = str(given["HOST"])
        if given.get("PORT"):
            parameters["port"] = str(given["PORT"])
    return parameters


def _mariadb_parameters(alias: str, given: Mapping[str, Any]) -> dict[str, str]:
    options: Mapping[str, Any] = given.get("OPTIONS") or {}
    if "read_default_file" in options:
        raise ConfigurationError(
            f"DATABASES[{alias!r}] takes its address from the file {options['read_default_file']}, which a relay does "
            "not read: write NAME, USER, PASSWORD, HOST and PORT"
        )
    parameters: dict[str, str] = {}
    if socket := given["HOST"] if _socket(given) else options.get("unix_socket"):
        parameters["unix_socket"] = str(socket)
    certificates: Mapping[str, Any] = options.get("ssl") or {}
    for name in ("ca", "cert", "key"):
        # mysqlclient and PyMySQL nest them; PyMySQL also takes them flat.
        if value := certificates.get(name) or options.get(f"ssl_{name}"):
            parameters[f"ssl_{name}"] = str(value)
    return parameters


def _socket(given: Mapping[str, Any]) -> bool:
    return str(given.get("HOST") or "").startswith("/")


def _login(given: Mapping[str, Any]) -> str:
    user, password = str(given.get("USER") or ""), str(given.get("PASSWORD") or "")
    if not user:
        return ""
    return quote(user, safe="") + (f":{quote(password, safe='')}" if password else "") + "@"


def _hosts(alias: str, given: Mapping[str, Any]) -> str:
    """The servers as a URL names them. PostgreSQL takes several, with one port for all or one for each."""
    if _socket(given):
        return ""
    hosts, ports = str(given.get("HOST") or "").split(","), str(given.get("PORT") or "").split(",")
    if len(ports) not in (1, len(hosts)):
        raise ConfigurationError(
            f"DATABASES[{alias!r}] has {len(hosts)} HOSTs and {len(ports)} PORTs: write one PORT, or one for each"
        )
    ports = ports * len(hosts) if len(ports) == 1 else ports
    return ",".join(_server(host.strip(), port.strip()) for host, port in zip(hosts, ports, strict=True))


def _server(host: str, port: str) -> str:
    host = f"[{host}]" if ":" in host and not host.startswith("[") else host
    return f"{host}:{port}" if port else host
