"""Environment variables under the names that Spring derives from properties.

`outbox.publisher.batch-size` is OUTBOX_PUBLISHER_BATCH_SIZE or, as Spring's rule has it, OUTBOX_PUBLISHER_BATCHSIZE.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import quote

_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)?")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_FLAGS = {"true": True, "on": True, "yes": True, "false": False, "off": False, "no": False}

RABBITMQ = "SPRING_RABBITMQ_"
MAX_SECONDS = 366 * 86_400.0


class Variables:
    """The variables of one prefix. Collects every invalid value, so that all are reported at once."""

    def __init__(self, environment: Mapping[str, str], prefix: str) -> None:
        self._prefix = prefix
        self._left = {name: value.strip() for name, value in environment.items() if name.startswith(prefix)}
        self._mistakes: list[str] = []

    @property
    def mistakes(self) -> list[str]:
        """Every invalid value, and every variable of the prefix that is unknown."""
        return [*self._mistakes, *(f"{name} is not a setting of this service" for name in self._left)]

    def text(self, name: str) -> str | None:
        """The value; None if the variable is not set or empty. `name` is without the prefix: POLLING_INTERVAL."""
        _, value = self._take(name)
        return value or None

    def seconds(self, name: str, *, zero: bool = False) -> float | None:
        """A duration in seconds: 500ms, 2s, 1h, or a number of milliseconds. zero: whether 0 is allowed."""
        variable, value = self._take(name)
        if not value:
            return None
        written = _DURATION.fullmatch(value.lower())
        found = float(written[1]) * _SECONDS[written[2] or "ms"] if written else -1.0
        if not 0 <= found <= MAX_SECONDS or not (found or zero):
            self._mistakes.append(
                f"{variable} is {value!r}: write a duration such as 500ms, 2s or 1h, or a number of milliseconds"
            )
            return None
        return found

    def whole(self, name: str, *, least: int, most: int) -> int | None:
        variable, value = self._take(name)
        if not value:
            return None
        if not (value.isascii() and value.isdecimal() and len(value) < 20 and least <= int(value) <= most):
            self._mistakes.append(f"{variable} is {value!r}: write a whole number from {least} to {most}")
            return None
        return int(value)

    def flag(self, name: str) -> bool | None:
        variable, value = self._take(name)
        if not value:
            return None
        if value.lower() not in _FLAGS:
            self._mistakes.append(f"{variable} is {value!r}: write true or false")
            return None
        return _FLAGS[value.lower()]

    def choice(self, name: str, *choices: str) -> str | None:
        variable, value = self._take(name)
        if value and value not in choices:
            self._mistakes.append(f"{variable} is {value!r}: write {' or '.join(choices)}")
            return None
        return value or None

    def _take(self, name: str) -> tuple[str, str]:
        """The name of the variable as it is set, and its value."""
        found = {one for one in self._left if _squeezed(one) == _squeezed(self._prefix + name)}
        values = {one: self._left.pop(one) for one in sorted(found)}
        if len(values) > 1:
            self._mistakes.append(f"{' and '.join(values)} are the same setting; keep one")
        return next(iter(values.items()), (self._prefix + name, ""))


def rabbitmq_url(environment: Mapping[str, str], mistakes: list[str]) -> str:
    """The URL from SPRING_RABBITMQ_HOST, _PORT, _USERNAME, _PASSWORD and _VIRTUAL_HOST; '' without a host.

    Ignores other variables of Spring. Adds invalid values to `mistakes`.
    """
    known = ("HOST", "PORT", "USERNAME", "PASSWORD", "VIRTUAL_HOST", "VIRTUALHOST")
    given = Variables({name: environment[name] for one in known if (name := RABBITMQ + one) in environment}, RABBITMQ)
    host, user, password = given.text("HOST"), given.text("USERNAME"), given.text("PASSWORD")
    port, virtual_host = given.whole("PORT", least=1, most=65_535), given.text("VIRTUAL_HOST")
    if host is None and any((user, password, port, virtual_host)):
        mistakes.append(f"{RABBITMQ}HOST is not set, but other {RABBITMQ}… variables are; set it or remove them")
    if host is not None and not re.fullmatch(r"[\w.:-]+", host):
        mistakes.append(f"{RABBITMQ}HOST is {host!r}: write the name or the address of a host")
    mistakes += given.mistakes
    if host is None or mistakes:
        return ""
    login = f"{quote(user or 'guest', safe='')}:{quote(password or 'guest', safe='')}"
    address = f"[{host}]" if ":" in host else host
    return f"amqp://{login}@{address}:{port or 5672}/{quote(virtual_host or '/', safe='')}"


def _squeezed(name: str) -> str:
    return name.replace("_", "")
