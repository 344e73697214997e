"""PUSH and SMS: sends one request to a gateway, with the event id as idempotency key.

    2xx, 409                              accepted; 409: the gateway already knows this key
    408, 425, 429, 502, 503, 504, 401     UnavailableError: the channel is deferred, no attempt is counted
    any other 4xx                         PermanentError: dead-lettered at once
    any other status                      RejectedError: the relay retries by its retry policy
    no connection, timeout                UnavailableError

A rejected login (401) concerns our configuration, not the message, so it does not count as an attempt.
"""

from __future__ import annotations

from collections.abc import Callable

import httpx

from apps.notifications.delivery.log import Recipient
from apps.notifications.delivery.request import DeliveryRequest
from apps.notifications.delivery.settings import Gateway
from pillarbox import PermanentError, RejectedError, UnavailableError

ALREADY_ACCEPTED = 409
UNAVAILABLE = frozenset({401, 408, 425, 429, 502, 503, 504})

AddressOf = Callable[[Recipient], str | None]


class Webhook:
    """Sends through one gateway; thread-safe. `address_of` returns the user's address at the gateway."""

    def __init__(self, gateway: Gateway, *, address_of: AddressOf) -> None:
        self._gateway = gateway
        self._address_of = address_of
        login = {} if gateway.token is None else {"Authorization": f"Bearer {gateway.token}"}
        self._client = httpx.Client(timeout=gateway.timeout, headers=login)

    def send(self, request: DeliveryRequest, to: Recipient) -> None:
        """Returns when the gateway has accepted the message. Raises PermanentError, RejectedError, UnavailableError."""
        address = self._address_of(to)
        if not address:
            raise PermanentError(f"user {to.user_id} has no address for {request.channel}")
        message = {
            "to": address,
            "title": request.title,
            "body": request.body,
            "event_type": request.event_type,
            "notification_id": request.notification_id,
            "audience": request.audience,
        }
        try:
            # Streamed, so that the body of the response, which may be of any size, is not read.
            with self._client.stream(
                "POST", self._gateway.url, json=message, headers={"Idempotency-Key": request.delivery_id}
            ) as answer:
                self._check_status(answer.status_code, to)
        except httpx.HTTPError as error:
            raise UnavailableError(f"{self._gateway.label} did not respond: {type(error).__name__}: {error}") from None

    def close(self) -> None:
        self._client.close()

    def _check_status(self, status: int, to: Recipient) -> None:
        if 200 <= status < 300 or status == ALREADY_ACCEPTED:
            return
        refusal = f"{self._gateway.label} answered {status} to a message for user {to.user_id}"
        if status in UNAVAILABLE:
            raise UnavailableError(refusal)
        raise PermanentError(refusal) if 400 <= status < 500 else RejectedError(refusal)
