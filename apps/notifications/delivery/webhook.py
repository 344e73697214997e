"""PUSH and SMS: one request to a gateway, which is told the event's id as its idempotency key.

    2xx, 409                              done; 409 means that the gateway had this key already
    408, 425, 429, 502, 503, 504, 401     the gateway's matter: UnavailableError, all wait, none is charged
    any other 4xx                         PermanentError: a dead letter at once
    anything else                         RejectedError: tried again by the retry policy
    no connection, no answer in time      UnavailableError

A refused login (401) says something about us and nothing about a message: no message dies of it.
"""

from __future__ import annotations

from collections.abc import Callable

import httpx

from apps.notifications.delivery.log import Recipient
from apps.notifications.delivery.request import DeliveryRequest
from apps.notifications.delivery.settings import Gateway
from pillarbox import PermanentError, RejectedError, UnavailableError

ALREADY_DONE = 409
NOT_NOW = frozenset({401, 408, 425, 429, 502, 503, 504})

AddressOf = Callable[[Recipient], str | None]


class Webhook:
    """Sends through one gateway; any number of threads may call it. `address_of` picks what identifies a user there."""

    def __init__(self, gateway: Gateway, *, address_of: AddressOf) -> None:
        self._gateway = gateway
        self._address_of = address_of
        login = {} if gateway.token is None else {"Authorization": f"Bearer {gateway.token}"}
        self._client = httpx.Client(timeout=gateway.timeout, headers=login)

    def send(self, request: DeliveryRequest, to: Recipient) -> None:
        """Returns once the gateway has taken responsibility. Raises PermanentError, RejectedError, UnavailableError."""
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
            # The answer's body is nobody's business, and may be of any size.
            with self._client.stream(
                "POST", self._gateway.url, json=message, headers={"Idempotency-Key": request.delivery_id}
            ) as answer:
                self._judge(answer.status_code, to)
        except httpx.HTTPError as error:
            raise UnavailableError(f"{self._gateway.place} did not answer: {type(error).__name__}: {error}") from None

    def close(self) -> None:
        self._client.close()

    def _judge(self, status: int, to: Recipient) -> None:
        if 200 <= status < 300 or status == ALREADY_DONE:
            return
        refusal = f"{self._gateway.place} answered {status} to a message for user {to.user_id}"
        if status in NOT_NOW:
            raise UnavailableError(refusal)
        raise PermanentError(refusal) if 400 <= status < 500 else RejectedError(refusal)
