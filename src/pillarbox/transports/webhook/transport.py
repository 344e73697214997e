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
import time
from collections import defaultdict
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from io import BytesIO
from typing import Any

from pillarbox.core.clock import Duration, seconds
from pillarbox.core.errors import ConfigurationError, PermanentError, SendError, UnavailableError
from pillarbox.core.payload import Size, size_in_bytes
from pillarbox.core.transport import Address, Outgoing, Pace, SendResult
from pillarbox.settings.shared import SEND_TIMEOUT
from pillarbox.transports.shares import free_calls
from pillarbox.transports.webhook.connection import connect
from pillarbox.transports.webhook.driver import (
    URL,
    AbstractResolver,
    ClientError,
    ClientResponse,
    ClientSession,
    ClientTimeout,
    ConnectionTimeoutError,
    DummyCookieJar,
    TCPConnector,
    ThreadedResolver,
)
from pillarbox.transports.webhook.guard import AddressGuard
from pillarbox.transports.webhook.headers import encoded_id, request_headers
from pillarbox.transports.webhook.plugin import (
    HEADER_VALUE,
    HttpEndpoint,
    WebhookAddress,
    WebhookOptions,
    check_keys,
    tls_context,
)
from pillarbox.transports.webhook.responses import excerpt_of, result_of, retry_after_seconds
from pillarbox.transports.webhook.signature import ID, SIGNATURE, TIMESTAMP, signature_header
from pillarbox.transports.webhook.target import Target, beginning, failure, finish

CLOSED = "the webhook transport is closed; create a new one"
KEEP_ALIVE = 4.0
"""Seconds that an idle connection is kept: less than most servers keep it, so that no request meets its end."""
PINGED_HOSTS = 5
"""The most hosts that a ping connects to before it fails."""
_LARGE = 1 << 20
"""Bytes from which aiohttp writes a body in pieces."""


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
        resolver: AbstractResolver | None = None,
    ) -> None:
        """
        url: where events go whose address has no URL of its own; a path in an address is a path below it.
        send_timeout: how long one request may take, from its connection to the end of the response.
        resolver: aiohttp's, instead of that of the system.

        The others are the settings of `[transports.NAME]`. Raises ConfigurationError for a value that cannot work.
        """
        self._options = options = WebhookOptions(
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
        self._resolver = resolver
        self._session: ClientSession | None = None
        self._slots: defaultdict[tuple[str, str, int], asyncio.Semaphore] = defaultdict(
            lambda: asyncio.Semaphore(options.connections_per_host)
        )
        """Requests under way per host: a request that waits for a connection has not begun, and cannot time out."""
        self._targets: dict[Address, Target] = {}
        self._neighbours: defaultdict[tuple[str, str, int], set[Address]] = defaultdict(set)
        """The addresses at each host."""
        self._requests: set[asyncio.Task[SendResult]] = set()
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
        tasks = [finished.watch(position, self._begin(one)) for position, one in enumerate(batch)]
        left = len(tasks)
        try:
            while left:
                results = await finished.next()
                left -= len(results)
                yield results
        finally:
            for task in tasks:
                task.cancel()
            if left:
                await asyncio.gather(*tasks, return_exceptions=True)

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
        requests = list(self._requests)
        for request in requests:
            request.cancel()
        await asyncio.gather(*requests, return_exceptions=True)
        if self._session is not None:
            await self._session.close()

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

    def _begin(self, one: Outgoing) -> asyncio.Task[SendResult]:
        task = asyncio.create_task(self._request(one))
        self._requests.add(task)
        task.add_done_callback(self._requests.discard)
        return task

    async def _request(self, one: Outgoing) -> SendResult:
        """Send one event. Raises nothing but a cancellation."""
        target = self._target(one.address)
        if target is None:
            return PermanentError(
                f"{type(one.address).__name__} is not an address of a webhook; correct the destination"
            )
        if not HEADER_VALUE.fullmatch(one.content_type):
            return PermanentError(
                f"event {one.message.event_id} has a content type that HTTP does not allow; correct the producer"
            )
        if len(one.body) > self._max_body:
            return PermanentError(
                f"event {one.message.event_id} has a body of {len(one.body)} bytes, more than max_body "
                f"({self._options.max_body}); raise it, or send less"
            )
        try:
            url = target.url_for(one)
            headers = self._headers(one, target)
        except SendError as error:
            return error
        except UnicodeEncodeError:
            return PermanentError(f"event {one.message.event_id!r} has a header that is not text; correct the producer")
        async with self._slots[target.endpoint.origin]:
            try:
                response = await self._post(url, headers, one.body)
            except TimeoutError as error:
                return UnavailableError(self._timed_out(target, error))
            except (ClientError, OSError) as error:
                return UnavailableError(f"{target.endpoint} failed: {failure(error)}")
            async with response:
                return await self._result(response, one.body, target)

    async def _post(self, url: URL, headers: dict[str, str], body: bytes) -> ClientResponse:
        """The response, as soon as its headers are there."""
        session = self._session or self._open()
        data: Any = BytesIO(body) if len(body) >= _LARGE else body
        async with asyncio.timeout(self._send_timeout):
            return await session.post(url, data=data, headers=headers, allow_redirects=False)

    async def _result(self, response: ClientResponse, body: bytes, target: Target) -> SendResult:
        if 200 <= response.status < 300:
            await finish(response)
            return None
        asked = response.headers.get("Retry-After")
        read = await beginning(response)
        return result_of(
            response.status,
            host=str(target.endpoint),
            retry_after=retry_after_seconds(asked, now=datetime.now(UTC), maximum=self._max_retry_after),
            location=response.headers.get("Location"),
            excerpt=excerpt_of(read, secrets=target.secrets, body=body) if self._options.response_text else "",
        )

    def _headers(self, one: Outgoing, target: Target) -> dict[str, str]:
        message_id, timestamp = encoded_id(one.message.event_id), int(time.time())
        headers = request_headers(one.headers)
        headers.update(target.headers)
        headers["Content-Type"] = one.content_type
        headers["Idempotency-Key"] = headers[ID] = message_id
        headers[TIMESTAMP] = str(timestamp)
        if target.keys:
            headers[SIGNATURE] = signature_header(target.keys, message_id, timestamp, one.body)
        return headers

    def _target(self, address: Address) -> Target | None:
        found = self._targets.get(address)
        if found is None and isinstance(address, WebhookAddress):
            found = self._targets[address] = Target(address, self._endpoint, self._options, self._keys)
            self._neighbours[found.endpoint.origin].add(address)
        return found

    def _open(self) -> ClientSession:
        """The session. Cookies, proxies of the environment and redirects are not used."""
        connector = TCPConnector(
            limit=self._options.total_connections,
            limit_per_host=self._options.connections_per_host,
            keepalive_timeout=KEEP_ALIVE,
            ssl=self._tls,
            resolver=self._resolver or ThreadedResolver(),
            socket_factory=self._guard.socket_for,
        )
        self._session = ClientSession(
            connector=connector,
            cookie_jar=DummyCookieJar(),
            timeout=ClientTimeout(total=None, sock_connect=self._connect_timeout),
            trust_env=False,
            auto_decompress=False,
            headers={"User-Agent": "pillarbox", "Accept-Encoding": "identity"},
        )
        return self._session

    def _timed_out(self, target: Target, error: TimeoutError) -> str:
        if isinstance(error, ConnectionTimeoutError):
            return f"{target.endpoint} cannot be reached: no connection within {self._connect_timeout:g} s"
        return f"{target.endpoint} did not respond within {self._send_timeout:g} s"


class _Finished:
    """Collects the results of requests as they come."""

    def __init__(self) -> None:
        self._results: list[tuple[int, SendResult]] = []
        self._some = asyncio.Event()

    def watch(self, position: int, request: asyncio.Task[SendResult]) -> asyncio.Task[SendResult]:
        request.add_done_callback(lambda done: self._add(position, done))
        return request

    def _add(self, position: int, done: asyncio.Task[SendResult]) -> None:
        if done.cancelled():
            result: SendResult = UnavailableError(CLOSED)
        elif (error := done.exception()) is not None:
            result = UnavailableError(f"the webhook transport is at fault: {type(error).__name__}")
        else:
            result = done.result()
        self._results.append((position, result))
        self._some.set()

    async def next(self) -> list[tuple[int, SendResult]]:
        await self._some.wait()
        results, self._results = self._results, []
        self._some.clear()
        return results
