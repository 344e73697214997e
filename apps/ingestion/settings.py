"""The settings, read once from the environment and validated before anything starts.

Invariant: a password in a URL appears in no error, no log line and no `repr`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, Self, get_args
from urllib.parse import urlsplit

from apps.ingestion import publisher
from apps.ingestion.publisher import Publisher
from apps.runtime.variables import RABBITMQ, rabbitmq_url

RelayMode = Literal["embedded", "separate", "off"]
LogLevel = Literal["TRACE", "DEBUG", "INFO", "WARNING", "ERROR"]

PREFIX = "INGESTION_"
METRICS = "INGESTION_METRICS"
"""host:port of /metrics and /health of a consumer or a separate relay; `off`: none."""
STORES = ("postgresql", "postgres", "mariadb", "sqlite")
BROKERS = ("amqp", "amqps")


class SettingsError(Exception):
    """Variables are invalid; the text names each of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of the service. `read` creates them from the environment."""

    store: str = field(default="sqlite:///ingestion.db", repr=False)
    """INGESTION_STORE: postgresql://…, mariadb://… or sqlite:///file.db"""
    transport: str = field(default="", repr=False)
    """INGESTION_TRANSPORT: amqp://…; empty: validation and enrichment are handlers of the embedded relay."""
    relay: RelayMode = "embedded"
    """INGESTION_RELAY: embedded in this service; a separate process; or off."""
    publisher: Publisher = field(default_factory=Publisher)
    """OUTBOX_PUBLISHER_…: how the relay polls and retries."""
    host: str = "127.0.0.1"
    port: int = 8081
    """INGESTION_LISTEN: host:port"""
    keep_keys: timedelta = timedelta(hours=24)
    """INGESTION_IDEMPOTENCY_HOURS: how long an Idempotency-Key is kept."""
    max_backlog: int = 10_000
    """INGESTION_MAX_BACKLOG: with more pending events than this, /health is DOWN."""
    log_level: LogLevel = "INFO"
    """INGESTION_LOG_LEVEL"""

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> Self:
        """Raises SettingsError."""
        return cls(**_Reading(environment).result())


class _Reading:
    """One pass over the environment; reports all mistakes at once."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._left = {name: value for name, value in environment.items() if name.startswith(PREFIX)}
        self._left.pop(METRICS, None)  # only consumers and separate relays read it
        self._mistakes: list[str] = []
        self._read: dict[str, Any] = {}

    def result(self) -> dict[str, Any]:
        self._read["publisher"] = publisher.read(self._environment, self._mistakes)
        for take in (self._store, self._transport, self._relay, self._listen, self._numbers, self._log_level):
            take()
        self._mistakes += [f"{name} is not a setting of this service" for name in self._left]
        if self._mistakes:
            raise SettingsError("; ".join(self._mistakes))
        return self._read

    def _take(self, name: str) -> str:
        """The value, for a URL also from the file named by …_FILE; '' if it is not set."""
        path = self._left.pop(f"{PREFIX}{name}_FILE", "") if name in ("STORE", "TRANSPORT") else ""
        value = self._left.pop(PREFIX + name, "")
        if not path:
            return value.strip()
        if value:
            self._mistakes.append(f"{PREFIX}{name} and {PREFIX}{name}_FILE are both set; keep one")
            return ""
        try:
            return Path(path).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            self._mistakes.append(f"{PREFIX}{name}_FILE cannot be read: {type(error).__name__}")
            return ""

    def _store(self) -> None:
        if url := self._take("STORE"):
            if not _is_url(url, STORES) or (url.startswith("sqlite") and not _names_a_file(url)):
                self._mistakes.append(
                    f"{PREFIX}STORE must be postgresql://user@host/database, mariadb://user@host/database "
                    "or sqlite:///file.db"
                )
            self._read["store"] = url

    def _transport(self) -> None:
        url, named = self._take("TRANSPORT"), rabbitmq_url(self._environment, self._mistakes)
        if url and named:
            self._mistakes.append(f"{PREFIX}TRANSPORT and {RABBITMQ}HOST are both set; keep one")
        if url and not _is_url(url, BROKERS):
            self._mistakes.append(f"{PREFIX}TRANSPORT must be amqp://user:password@host/vhost, or empty")
        if url or named:
            self._read["transport"] = url or named

    def _relay(self) -> None:
        mode = self._choice("RELAY", get_args(RelayMode), "embedded")
        if mode == "separate" and "transport" not in self._read:
            self._mistakes.append(
                f"{PREFIX}RELAY=separate needs {PREFIX}TRANSPORT: without a broker the relay must be embedded"
            )
        self._read["relay"] = mode if self._read["publisher"].enabled else "off"

    def _log_level(self) -> None:
        self._read["log_level"] = self._choice("LOG_LEVEL", get_args(LogLevel), "INFO")

    def _choice(self, name: str, choices: tuple[str, ...], default: str) -> str:
        value = self._take(name) or default
        if value not in choices:
            self._mistakes.append(f"{PREFIX}{name} is {value!r}: {', '.join(choices)}")
        return value

    def _listen(self) -> None:
        listen = self._take("LISTEN")
        if not listen:
            return
        host, _, port = listen.rpartition(":")
        if not host or not port.isdecimal() or not 0 < int(port) < 65_536:
            self._mistakes.append(f"{PREFIX}LISTEN is {listen!r}: write host:port, for example 127.0.0.1:8081")
        else:
            self._read |= {"host": host.strip("[]"), "port": int(port)}

    def _numbers(self) -> None:
        if (hours := self._number("IDEMPOTENCY_HOURS")) is not None:
            self._read["keep_keys"] = timedelta(hours=hours)
        if (most := self._number("MAX_BACKLOG")) is not None:
            self._read["max_backlog"] = most

    def _number(self, name: str) -> int | None:
        if not (value := self._take(name)):
            return None
        if not value.isdecimal() or not 0 < int(value) < 1_000_000_000:
            self._mistakes.append(f"{PREFIX}{name} is {value!r}: a whole number above zero")
            return None
        return int(value)


def _is_url(url: str, schemes: tuple[str, ...]) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in schemes and "://" in url and (parts.port or 1) > 0
    except ValueError:  # an invalid port; the text of the error would contain a part of the URL
        return False


def _names_a_file(url: str) -> bool:
    path = url.removeprefix("sqlite:///")
    return path not in (url, "", ":memory:")
