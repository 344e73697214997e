"""The checks of receivers: connections, certificates, signatures.

They connect, and send no request: there is no request that is harmless for every receiver.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from pillarbox.admin.diagnosis import Check, CheckResult, failed, passed, warned
from pillarbox.core.clock import Duration, seconds, timestamp
from pillarbox.core.errors import UnavailableError
from pillarbox.transports.webhook.connection import Connected, connect
from pillarbox.transports.webhook.guard import AddressGuard
from pillarbox.transports.webhook.plugin import HttpEndpoint, WebhookAddress, check_keys, tls_context

EXPIRES_SOON = timedelta(days=14)
_BASE = "the URL of the transport"


class WebhookDiagnosis:
    """The checks of the receivers of one transport. Raises ConfigurationError."""

    def __init__(
        self,
        url: str,
        *,
        addresses: Mapping[str, WebhookAddress] | None = None,
        secrets: Sequence[str] = (),
        allow_networks: Sequence[str] = (),
        ca_file: str = "",
        timeout: Duration = "5s",
    ) -> None:
        """`addresses` are the destinations behind this transport; `timeout` limits each connection."""
        base = HttpEndpoint.parse(url)
        self._addresses = dict(addresses or {})
        self._signed = bool(check_keys(secrets))
        self._guard = AddressGuard(allow_networks)
        self._tls = tls_context(ca_file)
        self._within = seconds(timeout)
        self._endpoints: dict[tuple[str, str, int], HttpEndpoint] = {base.origin: base}
        self._users: defaultdict[tuple[str, str, int], list[str]] = defaultdict(list)
        for name, address in self._addresses.items():
            endpoint = HttpEndpoint.parse(address.url) if address.is_absolute else base
            self._endpoints.setdefault(endpoint.origin, endpoint)
            self._users[endpoint.origin].append(name)
        self._connected: dict[tuple[str, str, int], Connected] = {}

    def checks(self) -> Sequence[Check]:
        """In this order: a failed check may explain later ones."""
        return [
            Check(name="transport.reachable", ask=self._reachable),
            Check(name="transport.certificates", ask=self._certificates),
            Check(name="transport.encryption", ask=self._encryption),
            Check(name="transport.signatures", ask=self._signatures),
        ]

    async def aclose(self) -> None:
        """Every connection was closed by its check."""

    async def _reachable(self) -> CheckResult:
        wrong: list[str] = []
        for origin, endpoint in self._endpoints.items():
            try:
                self._connected[origin] = await connect(endpoint, self._guard, self._tls, within=self._within)
            except UnavailableError as error:
                wrong.append(self._named(endpoint, str(error)))
        if wrong:
            return failed(
                "; ".join(wrong),
                "check that the receiver runs, its URL and its certificate; for a private address see allow_networks, "
                "for a private authority ca_file",
            )
        return passed(f"every receiver accepts connections, no request was sent: {self._list()}")

    async def _certificates(self) -> CheckResult:
        soon = [
            self._named(endpoint, f"{endpoint} until {timestamp(found.expires)}")
            for origin, endpoint in self._endpoints.items()
            if (found := self._connected.get(origin)) is not None
            and found.expires is not None
            and found.expires - datetime.now(UTC) < EXPIRES_SOON
        ]
        if soon:
            return warned(
                f"certificates expire within {EXPIRES_SOON.days} days: {'; '.join(soon)}",
                "ask the receiver to renew it: with an expired one, events wait in the outbox",
            )
        return passed(f"no certificate expires within {EXPIRES_SOON.days} days")

    async def _encryption(self) -> CheckResult:
        plain = [self._named(one, str(one)) for one in self._endpoints.values() if one.scheme == "http"]
        if plain:
            return warned(f"events are sent without encryption: {'; '.join(plain)}", "use https://")
        return passed("every URL is https://")

    async def _signatures(self) -> CheckResult:
        unsigned = [name for name, address in self._addresses.items() if not (address.keys or self._signed)]
        if not self._addresses and not self._signed:
            unsigned = [_BASE]
        if unsigned:
            return warned(
                f"requests are not signed: {', '.join(unsigned)}",
                "set secrets, so that the receiver can verify the sender; see docs/how-to/webhooks.md",
            )
        return passed("every request is signed")

    def _named(self, endpoint: HttpEndpoint, text: str) -> str:
        users = self._users.get(endpoint.origin)
        return f"{', '.join(users) if users else _BASE}: {text}"

    def _list(self) -> str:
        return ", ".join(str(endpoint) for endpoint in self._endpoints.values())
