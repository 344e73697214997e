"""What a request contains, and what the responses of a receiver mean."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from aiohttp import web

from pillarbox.core.errors import GoneError, PermanentError, RejectedError, UnavailableError, WebhookVerificationError
from pillarbox.core.transport import SendResult
from pillarbox.testing.conformance.transports import outgoing
from pillarbox.transports.webhook import WebhookTransport, WebhookVerifier, event_headers
from tests.integration.webhook.conftest import MakeTransport
from tests.integration.webhook.receiver import Received, Receiver

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OTHER = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="


async def answered(make: MakeTransport, receiver: Receiver, status: int, **more: object) -> SendResult:
    receiver.answer = lambda _: web.Response(status=status, **more)  # type: ignore[arg-type]  # as a test passes them
    [result] = await make(receiver.url()).send([outgoing("a", WebhookTransport.to())])
    return result


async def test_a_receiver_can_verify_a_signed_request(make: MakeTransport, receiver: Receiver) -> None:
    transport = make(receiver.url("/in"), secrets=[SECRET])
    assert await transport.send([outgoing("evt.1 é", WebhookTransport.to(), body=b"\x00\xff")]) == [None]
    [request] = receiver.requests
    verified = WebhookVerifier(SECRET).verify(request.headers, request.body)
    assert (verified.event_id, verified.body, request.path) == ("evt.1 é", b"\x00\xff", "/in")
    with pytest.raises(WebhookVerificationError):
        WebhookVerifier(OTHER).verify(request.headers, request.body)


async def test_a_request_is_signed_with_both_secrets_while_one_is_replaced(
    make: MakeTransport, receiver: Receiver
) -> None:
    await make(receiver.url(), secrets=[SECRET, OTHER]).send([outgoing("a", WebhookTransport.to())])
    [request] = receiver.requests
    for secret in (SECRET, OTHER):
        WebhookVerifier(secret).verify(request.headers, request.body)


async def test_an_address_has_secrets_and_headers_of_its_own(make: MakeTransport, receiver: Receiver) -> None:
    transport = make(receiver.url(), secrets=[SECRET], headers={"Authorization": "Bearer 1", "X-Kept": "k"})
    own = WebhookTransport.to("/own", secrets=[OTHER], headers={"authorization": "Bearer 2"})
    assert await transport.send([outgoing("a", own), outgoing("b", WebhookTransport.to("/"))]) == [None, None]
    [first] = [one for one in receiver.requests if one.path == "/own"]
    WebhookVerifier(OTHER).verify(first.headers, first.body)
    assert [value for name, value in first.headers.items() if name.lower() == "authorization"] == ["Bearer 2"]
    assert first.header("x-kept") == "k"


async def test_the_idempotency_key_is_the_event_id_on_every_attempt(make: MakeTransport, receiver: Receiver) -> None:
    transport = make(receiver.url())
    for attempt in (1, 2):
        await transport.send([outgoing("e-1", WebhookTransport.to(), attempt=attempt)])
    assert [one.header("idempotency-key") for one in receiver.requests] == ["e-1", "e-1"]


async def test_headers_of_an_event_replace_no_header_of_the_request(make: MakeTransport, receiver: Receiver) -> None:
    hostile = {
        "Host": "elsewhere",
        "Content-Length": "1",
        "Content-Type": "x/y",
        "webhook-id": "other",
        "a": "1\r\nb: 2",
    }
    sent = outgoing("e-1", WebhookTransport.to(), body=b"whole", content_type="text/plain", headers=hostile)
    assert await make(receiver.url()).send([sent]) == [None]
    [request] = receiver.requests
    assert (request.body, request.header("content-type"), request.event_id) == (b"whole", "text/plain", "e-1")
    assert request.header("host") == f"localhost:{receiver.port}"
    assert event_headers(request.headers) == hostile


async def test_a_url_takes_values_from_the_event_and_stays_below_its_path(
    make: MakeTransport, receiver: Receiver
) -> None:
    address = WebhookTransport.to("/orders/{aggregate_id}?type={event_type}")
    good = outgoing("a", address, event_type="order placed&x=1")
    escaping = outgoing("b", address)
    climbing = escaping._replace(message=escaping.message._replace(aggregate_id=".."))
    slashed = escaping._replace(message=escaping.message._replace(aggregate_id="../../admin?x#y"))
    results = await make(receiver.url("/base")).send([good, climbing, slashed])
    assert [type(result) for result in results] == [type(None), PermanentError, type(None)]
    assert sorted(one.path for one in receiver.requests) == [
        "/base/orders/..%2F..%2Fadmin%3Fx%23y?type=thing.happened",
        "/base/orders/1?type=order%20placed%26x%3D1",
    ]


async def test_a_value_that_the_url_needs_and_the_event_lacks_is_the_fault_of_the_event(
    make: MakeTransport, receiver: Receiver
) -> None:
    one = outgoing("a", WebhookTransport.to("/{key}"))
    [result] = await make(receiver.url()).send([one._replace(message=one.message._replace(key=None))])
    assert isinstance(result, PermanentError)
    assert "needs key" in str(result)


async def test_an_event_that_is_too_large_fails_alone(make: MakeTransport, receiver: Receiver) -> None:
    to = WebhookTransport.to()
    large = outgoing("b", to, body=b"x" * 1001)
    results = await make(receiver.url(), max_body=1000).send([outgoing("a", to), large, outgoing("c", to)])
    assert [type(one) for one in results] == [type(None), PermanentError, type(None)]
    assert "max_body" in str(results[1])
    assert sorted(receiver.ids()) == ["a", "c"]


async def test_a_body_of_several_megabytes_arrives(make: MakeTransport, receiver: Receiver) -> None:
    body = bytes(range(256)) * 12_000
    [result] = await make(receiver.url(), max_body="4 MiB").send([outgoing("a", WebhookTransport.to(), body=body)])
    assert result is None
    assert receiver.requests[0].body == body


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (200, None),
        (202, None),
        (204, None),
        (301, RejectedError),
        (400, RejectedError),
        (401, RejectedError),
        (404, RejectedError),
        (408, UnavailableError),
        (410, GoneError),
        (422, RejectedError),
        (425, UnavailableError),
        (429, UnavailableError),
        (500, UnavailableError),
        (503, UnavailableError),
        (599, UnavailableError),
    ],
)
async def test_a_status_decides_on_the_result(
    make: MakeTransport, receiver: Receiver, status: int, kind: type | None
) -> None:
    assert type(await answered(make, receiver, status)) is (kind or type(None))


@pytest.mark.parametrize("status", [429, 503])
async def test_the_wait_that_a_receiver_asks_for_is_in_the_result(
    make: MakeTransport, receiver: Receiver, status: int
) -> None:
    result = await answered(make, receiver, status, headers={"Retry-After": "42"})
    assert isinstance(result, UnavailableError)
    assert result.retry_after == 42


async def test_the_wait_may_be_a_date_and_has_a_maximum(make: MakeTransport, receiver: Receiver) -> None:
    when = format_datetime(datetime.now(UTC) + timedelta(days=1), usegmt=True)
    result = await answered(make, receiver, 503, headers={"Retry-After": when})
    assert isinstance(result, UnavailableError)
    assert result.retry_after == 900


@pytest.mark.parametrize("wrong", [timedelta(hours=1), timedelta(hours=-1)])
async def test_a_wait_until_a_date_does_not_depend_on_the_clock_of_the_relay(
    make: MakeTransport, receiver: Receiver, wrong: timedelta
) -> None:
    theirs = datetime.now(UTC) + wrong
    headers = {
        "Date": format_datetime(theirs, usegmt=True),
        "Retry-After": format_datetime(theirs + timedelta(seconds=90), usegmt=True),
    }
    result = await answered(make, receiver, 503, headers=headers)
    assert isinstance(result, UnavailableError)
    assert result.retry_after == 90


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_not_followed(make: MakeTransport, receiver: Receiver, status: int) -> None:
    async with Receiver() as other:
        result = await answered(make, receiver, status, headers={"Location": other.url("/secret-path")})
        assert isinstance(result, RejectedError)
        assert "redirects to 'localhost'" in str(result)
        assert "secret-path" not in str(result)
        assert other.requests == []
    assert len(receiver.requests) == 1


async def test_an_error_shows_the_beginning_of_the_response_without_secrets(
    make: MakeTransport, receiver: Receiver
) -> None:
    def echo(request: Received) -> web.Response:
        return web.Response(status=422, text=f"no such field\r\n\x1b[31m{dict(request.headers)}" + "x" * 100_000)

    receiver.answer = echo
    transport = make(receiver.url("/tok-3n-in-path"), secrets=[SECRET], headers={"Authorization": "Bearer h1dden"})
    [result] = await transport.send([outgoing("a", WebhookTransport.to(), body=b"personal data")])
    shown = str(result)
    assert "422 Unprocessable" in shown
    assert "no such field" in shown
    assert len(shown) < 600
    assert shown.isprintable()
    hidden = ("h1dden", "tok-3n-in-path", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "personal data")
    assert [one for one in hidden if one in shown + repr(transport) + repr(result)] == []


async def test_the_text_of_responses_can_be_left_out(make: MakeTransport, receiver: Receiver) -> None:
    receiver.answer = lambda _: web.Response(status=400, text="John Doe is not known")
    [result] = await make(receiver.url(), response_text=False).send([outgoing("a", WebhookTransport.to())])
    assert "400 Bad Request" in str(result)
    assert "John" not in str(result)


async def test_proxies_and_credentials_of_the_environment_are_not_used(
    make: MakeTransport, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Receiver() as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.url())
        assert await make(receiver.url()).send([outgoing("a", WebhookTransport.to())]) == [None]
        assert proxy.requests == []


async def test_cookies_of_a_receiver_are_not_sent_back(make: MakeTransport, receiver: Receiver) -> None:
    receiver.answer = lambda _: web.Response(headers={"Set-Cookie": "session=1"})
    transport = make(receiver.url())
    for name in ("a", "b"):
        assert await transport.send([outgoing(name, WebhookTransport.to())]) == [None]
    assert not any("cookie" in map(str.lower, one.headers) for one in receiver.requests)
