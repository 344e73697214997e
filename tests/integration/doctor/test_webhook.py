"""Checks of receivers: they connect, and send no request."""

from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from pillarbox.admin.diagnosis import CheckResult
from pillarbox.transports.webhook import WebhookAddress
from pillarbox.transports.webhook.diagnosis import WebhookDiagnosis
from tests.integration.doctor.asking import ask
from tests.integration.webhook.conftest import certificates, server_context
from tests.integration.webhook.receiver import Receiver
from tests.servers.ports import free_port

__all__ = ["certificates"]  # a fixture

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
LOOPBACK = ["127.0.0.0/8", "::1/128"]


async def asked(url: str, *names: str, **options: Any) -> list[CheckResult]:
    async with aclosing(WebhookDiagnosis(url, **({"allow_networks": LOOPBACK} | options))) as diagnosis:
        return [await ask(diagnosis.checks(), name) for name in names]


async def test_a_receiver_with_a_certificate_passes_every_check_and_gets_no_request(certificates: Path) -> None:
    async with Receiver(tls=server_context(certificates)) as receiver:
        diagnosis = WebhookDiagnosis(
            receiver.url("/hooks"),
            secrets=[SECRET],
            allow_networks=LOOPBACK,
            ca_file=str(certificates / "authority.pem"),
        )
        results = [(check.name, (await check.ask()).result) for check in diagnosis.checks()]
        assert results == [(check.name, "pass") for check in diagnosis.checks()]
        assert receiver.requests == []


async def test_an_address_that_the_guard_refuses_fails() -> None:
    [found] = await asked("https://127.0.0.1", "transport.reachable", allow_networks=[])
    assert found.result == "fail"
    assert "127.0.0.1 is not a public address" in found.message
    assert "allow_networks" in found.fix


async def test_a_receiver_that_is_not_there_fails() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    [reachable] = await asked(url, "transport.reachable")
    assert reachable.result == "fail"
    assert url in reachable.message


async def test_a_destination_with_its_own_host_is_checked_by_its_name() -> None:
    async with Receiver() as receiver:
        other = f"http://127.0.0.1:{free_port()}"
        wanted = {"partner": WebhookAddress(url=f"{other}/path-secret"), "own": WebhookAddress(url="/own")}
        [found] = await asked(receiver.url(), "transport.reachable", addresses=wanted)
        assert found.result == "fail"
        assert f"partner: {other} cannot be reached" in found.message
        assert "path-secret" not in found.message
        assert "own" not in found.message


async def test_an_untrusted_certificate_fails(certificates: Path) -> None:
    async with Receiver(tls=server_context(certificates)) as receiver:
        [found] = await asked(receiver.url(), "transport.reachable")
        assert found.result == "fail"
        assert "certificate is not trusted" in found.message


async def test_a_certificate_that_expires_soon_is_a_warning(certificates: Path) -> None:
    async with Receiver(tls=server_context(certificates, "day")) as receiver:
        authority = str(certificates / "authority.pem")
        _, found = await asked(receiver.url(), "transport.reachable", "transport.certificates", ca_file=authority)
        assert found.result == "warn"
        assert "expire within 14 days" in found.message


async def test_a_url_without_encryption_is_a_warning() -> None:
    [found] = await asked("http://127.0.0.1:1", "transport.encryption")
    assert found.result == "warn"


@pytest.mark.parametrize(
    ("options", "result"),
    [
        ({}, "warn"),
        ({"secrets": [SECRET]}, "pass"),
        ({"addresses": {"a": WebhookAddress(secrets=[SECRET])}}, "pass"),
        ({"addresses": {"a": WebhookAddress(secrets=[SECRET]), "b": WebhookAddress(url="/b")}}, "warn"),
    ],
)
async def test_requests_without_a_signature_are_a_warning(options: dict[str, Any], result: str) -> None:
    [found] = await asked("https://127.0.0.1:1", "transport.signatures", **options)
    assert found.result == result
    assert SECRET not in found.message
