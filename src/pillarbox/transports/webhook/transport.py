"""Sends each event in a POST request of its own, several at once over pooled connections.

Each result is available as soon as its response has arrived: a slow receiver does not delay the results of others. Each
destination has its own share of the connections, so that a receiver that hangs leaves the others theirs. Requests are
concurrent, so that the order of a key is the relay's to keep: it sends the next event of a key after the one before was
accepted.

What is sent: the body as it is, `webhook-id` (the event id), `webhook-timestamp` and `webhook-signature` of the
Standard Webhooks specification, `Idempotency-Key` (the event id), and the headers of the event, see `headers`.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from functools import partial

from pillarbox.core.clock import Duration, seconds
from pillarbox.core.errors import ConfigurationError, PermanentError, SendError, UnavailableError
from pillarbox.core.payload import Size, size_in_bytes
from pillarbox.core.transport import Address, Outgoing, Pace, SendResult
from pillarbox.settings.shared import SEND_TIMEOUT
from pillarbox.transports.shares import free_calls
from pillarbox.transports.webhook.connection import Dialer, KeptAddresses, Resolver, connect, reason, system_resolver
from pillarbox.transports.webhook.guard import AddressGuard
from pillarbox.transports.webhook.http1 import InvalidResponseError, Response
from pillarbox.transports.webhook.plugin import (
    HEADER_VALUE,
    HttpEndpoint,
    WebhookAddress,
    WebhookOptions,
    check_keys,
    tls_context,
)
from pillarbox.transports.webhook.pool import ConnectTimeoutError, DisconnectedError, HttpPool, HttpRequest
from pillarbox.transports.webhook.responses import excerpt_of, result_of, retry_after_seconds
from pillarbox.transports.webhook.target import Target

CLOSED = "the webhook transport is closed; create a new one"
PINGED_HOSTS = 5
"""The most hosts that a ping connects to before it fails."""


class WebhookTransport:
    """Sends events to HTTP endpoints. See `pillarbox.adapters.Transport`. Connects on first use."""

    address_type = WebhookAddress

    def __init__(
        self,
        url: str,
        *,
        connections_per_host: int = WebhookOptions.connections_per_host,
        total_connections: int = WebhookOptions.total_connections,
        connect_timeout: Duration = WebhookOptions.connect_timeout,
        send_timeout: Duration = SEND_TIMEOUT,
        secrets: Sequence[str] = (),
        headers: Mapping[str, str] | None = None,
        allow_networks: Sequence[str] = (),
        ca_file: str = WebhookOptions.ca_file,
        max_body: Size = WebhookOptions.max_body,
        max_retry_after: Duration = WebhookOptions.max_retry_after,
        response_text: bool = WebhookOptions.response_text,
        resolver: Resolver = system_resolver,
    ) -> None:
        """
        url: where events go whose address has no URL of its own; a path in an address is a path below it.
        send_timeout: how long one request may take, from its connection to the end of the response.
        resolver: takes host and port, and returns what `getaddrinfo` returns; instead of that of the system.

        The others are the settings of `[transports.NAME]`. Raises ConfigurationError for a value that cannot work.
        """
        self._options = WebhookOptions(
            connections_per_host=connections_per_host,
            total_connections=total_connections,
            connect_timeout=connect_timeout,
            secrets=secrets,
            headers=headers or {},
            allow_networks=allow_networks,
            ca_file=ca_file,
            max_body=max_body,
            max_retry_after=max_retry_after,
            response_text=response_text,
        )
        self._endpoint = HttpEndpoint.parse(url)
        if "{" in url:
            raise ConfigurationError("the URL of a webhook transport has no placeholders; give its destinations a url")
        self._keys = check_keys(secrets)
        self._guard = AddressGuard(allow_networks)
        self._tls = tls_context(ca_file)
        self._connect_timeout = seconds(connect_timeout, field="connect_timeout")
        self._send_timeout = seconds(send_timeout, field="send_timeout")
        self._max_body = size_in_bytes(max_body, field="max_body")
        self._max_retry_after = seconds(max_retry_after, field="max_retry_after")
        self._pool = HttpPool(
            Dialer(self._guard, self._tls, KeptAddresses(resolver)),
            per_host=connections_per_host,
            total=total_connections,
            connect_timeout=self._connect_timeout,
            send_timeout=self._send_timeout,
        )
        self._targets: dict[Address, Target] = {}
        self._neighbours: defaultdict[tuple[str, str, int], set[Address]] = defaultdict(set)
        """The addresses at each host."""
        self._closed = False
        self.pace = Pace(
            batch_size=total_connections,
            concurrency=1,
            has_own_timeout=True,
            independent_results=True,
            capacity=self._capacity,
        )

    def __repr__(self) -> str:
        return f"WebhookTransport({str(self._endpoint)!r})"

    @staticmethod
    def to(url: str = "", *, secrets: Sequence[str] = (), headers: Mapping[str, str] | None = None) -> WebhookAddress:
        """The address of a path below the URL of the transport, or of a whole URL; '': the URL of the transport."""
        return WebhookAddress(url=url, secrets=tuple(secrets), headers=headers or {})

    def defaults(self, event_type: str) -> Mapping[str, Address]:
        """Every event goes to the URL of the transport."""
        return {"webhook": self.to()}

    async def send(self, batch: Sequence[Outgoing]) -> list[SendResult]:
        async with aclosing(self.stream(batch)) as stream:
            results = {position: result async for finished in stream for position, result in finished}
        return [results[position] for position in range(len(batch))]

    async def stream(self, batch: Sequence[Outgoing]) -> AsyncGenerator[list[tuple[int, SendResult]], None]:
        """See `pillarbox.core.transport.StreamingTransport`."""
        if self._closed:
            raise UnavailableError(CLOSED)
        finished = _Finished()
        requests = [self._begin(one, partial(finished.add, position)) for position, one in enumerate(batch)]
        left = len(requests)
        try:
            while left:
                results = await finished.next()
                left -= len(results)
                yield results
        finally:
            if left:
                for request in requests:
                    if request is not None:
                        request.cancel()

    async def ping(self) -> None:
        """Connect to one of the hosts, and send nothing. Raises UnavailableError if none of the first ones can be
        reached: that one host cannot be reached is the state of its destinations, not of the transport."""
        if self._closed:
            raise UnavailableError(CLOSED)
        known = {target.endpoint.origin: target.endpoint for target in self._targets.values()}
        errors: list[str] = []
        for endpoint in list(known.values())[:PINGED_HOSTS] or [self._endpoint]:
            try:
                await connect(endpoint, self._guard, self._tls, within=self._connect_timeout)
            except UnavailableError as error:
                errors.append(str(error))
            else:
                return
        raise UnavailableError("; ".join(errors))

    async def aclose(self) -> None:
        self._closed = True
        await self._pool.aclose(UnavailableError(CLOSED))

    def _capacity(self, address: Address, sending: Mapping[Address, int]) -> int:
        """How many more requests this destination may have under way: one that hangs leaves the others their shares,
        of all connections and of those to its host."""
        target = self._target(address)
        if target is None:
            return self._options.connections_per_host  # it is rejected without a request
        neighbours = self._neighbours[target.endpoint.origin]
        there = {one: count for one, count in sending.items() if one in neighbours}
        return min(
            free_calls(address, sending, self._targets.keys(), limit=self._options.total_connections),
            free_calls(address, there, neighbours, limit=self._options.connections_per_host),
        )

    def _begin(self, one: Outgoing, add: Callable[[SendResult], None]) -> HttpRequest | None:
        """Begin to send one event; `add` gets its result. None: it has its result, and nothing is sent."""
        target = self._target(one.address)
        if target is None:
            add(PermanentError(f"{type(one.address).__name__} is not an address of a webhook; correct the destination"))
            return None
        try:
            data = self._request(one, target)
        except SendError as error:
            add(error)
            return None

        def on_done(done: Response | Exception) -> None:
            add(self._result(done, target, one))

        return self._pool.send(target.endpoint, data, on_done)

    def _request(self, one: Outgoing, target: Target) -> bytes:
        """The bytes of a request. Raises PermanentError."""
        if not HEADER_VALUE.fullmatch(one.content_type):
            raise PermanentError(
                f"event {one.message.event_id} has a content type that HTTP does not allow; correct the producer"
            )
        if len(one.body) > self._max_body:
            raise PermanentError(
                f"event {one.message.event_id} has a body of {len(one.body)} bytes, more than max_body "
                f"({self._options.max_body}); raise it, or send less"
            )
        try:
            return target.request(one)
        except UnicodeEncodeError:
            raise PermanentError(
                f"event {one.message.event_id!r} has a header that is not text; correct the producer"
            ) from None

    def _result(self, done: Response | Exception, target: Target, one: Outgoing) -> SendResult:
        """What a response or an error means. The text of an error never contains the URL."""
        match done:
            case Response(status=status) if 200 <= status < 300:
                return None
            case Response():
                return result_of(
                    done.status,
                    host=str(target.endpoint),
                    retry_after=retry_after_seconds(
                        done.retry_after, date=done.date, now=datetime.now(UTC), maximum=self._max_retry_after
                    ),
                    location=done.location,
                    excerpt=excerpt_of(done.body, secrets=target.secrets, body=one.body)
                    if self._options.response_text
                    else "",
                )
            case UnavailableError():
                return done
            case ConnectTimeoutError():
                return UnavailableError(
                    f"{target.endpoint} cannot be reached: no connection within {self._connect_timeout:g} s"
                )
            case TimeoutError():
                return UnavailableError(f"{target.endpoint} did not respond within {self._send_timeout:g} s")
            case DisconnectedError():
                return UnavailableError(f"{target.endpoint} failed: the connection was closed before the response")
            case OSError() | InvalidResponseError():
                return UnavailableError(f"{target.endpoint} failed: {reason(done)}")
            case _:
                return UnavailableError(f"the webhook transport is at fault: {type(done).__name__}")

    def _target(self, address: Address) -> Target | None:
        found = self._targets.get(address)
        if found is None and isinstance(address, WebhookAddress):
            found = self._targets[address] = Target(address, self._endpoint, self._options, self._keys)
            self._neighbours[found.endpoint.origin].add(address)
        return found


class _Finished:
    """Collects the results of requests as they come."""

    def __init__(self) -> None:
        self._results: list[tuple[int, SendResult]] = []
        self._some = asyncio.Event()

    def add(self, position: int, result: SendResult) -> None:
        self._results.append((position, result))
        self._some.set()

    async def next(self) -> list[tuple[int, SendResult]]:
        await self._some.wait()
        results, self._results = self._results, []
        self._some.clear()
        return results
