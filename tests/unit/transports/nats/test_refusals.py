"""What the errors of JetStream mean for a message or a consumer; a server of NATS 2.9 returns few of them."""

from typing import Any

import pytest

from pillarbox.core.errors import (
    ConfigurationError,
    NackedError,
    PermanentError,
    PillarboxError,
    RejectedError,
    SendError,
    UnavailableError,
)
from pillarbox.testing.conformance.transports import outgoing
from pillarbox.transports.nats.headers import ApiError
from pillarbox.transports.nats.plugin import NatsAddress
from pillarbox.transports.nats.publisher import NatsPublication, refusal_of
from pillarbox.transports.nats.pull_consumer import not_created


@pytest.mark.parametrize(
    ("error", "result"),
    [
        ({"code": 503, "err_code": 10077, "description": "maximum messages exceeded"}, NackedError),
        ({"code": 503, "err_code": 10077, "description": "maximum messages per subject exceeded"}, NackedError),
        ({"code": 503, "err_code": 10077, "description": "no space left on device"}, UnavailableError),
        ({"code": 400, "err_code": 10002, "description": "resource limits exceeded for account"}, NackedError),
        ({"code": 429, "err_code": 10167, "description": "too many requests"}, NackedError),
        ({"code": 400, "err_code": 10054, "description": "message size exceeds maximum allowed"}, PermanentError),
        ({"code": 400, "err_code": 10060, "description": "expected stream does not match"}, UnavailableError),
        ({"code": 400, "err_code": 10109, "description": "invalid operation on sealed stream"}, UnavailableError),
        ({"code": 503, "err_code": 10023, "description": "insufficient resources"}, UnavailableError),
        ({"code": 500, "err_code": 10047, "description": "insufficient storage resources"}, UnavailableError),
        ({"code": 400, "err_code": 10003, "description": "bad request"}, RejectedError),
        ({"code": 400}, RejectedError),
    ],
)
def test_an_error_of_jetstream_has_its_result(error: dict[str, Any], result: type[SendError]) -> None:
    sent = NatsPublication(0, outgoing("a", NatsAddress(subject="s")), "s", "", creates=True, is_only_subject=True)
    assert type(refusal_of(sent, error)) is result


@pytest.mark.parametrize(
    ("error", "result"),
    [
        ({"code": 503, "err_code": 10008, "description": "JetStream system temporarily unavailable"}, UnavailableError),
        ({"code": 503, "err_code": 10023, "description": "insufficient resources"}, UnavailableError),
        ({"code": 500, "err_code": 10012, "description": "consumer create failed"}, UnavailableError),
        ({"code": 404, "err_code": 10059, "description": "stream not found"}, UnavailableError),
        ({"code": 429, "err_code": 10167, "description": "too many requests"}, UnavailableError),
        (
            {"code": 400, "err_code": 10100, "description": "filtered consumer not unique on workqueue stream"},
            ConfigurationError,
        ),
        (
            {"code": 400, "err_code": 10093, "description": "consumer filter subject is not a valid subset"},
            ConfigurationError,
        ),
    ],
)
def test_only_what_other_settings_can_end_keeps_a_consumer_from_being_created_for_good(
    error: dict[str, Any], result: type[PillarboxError]
) -> None:
    assert type(not_created("consumer 'billing'", "orders", ApiError(error))) is result
