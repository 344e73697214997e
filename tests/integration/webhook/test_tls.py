"""TLS: nothing is sent to a receiver whose certificate or host name is not trusted."""

from pathlib import Path

import pytest

from pillarbox.core.errors import ConfigurationError, UnavailableError
from pillarbox.testing.conformance.transports import outgoing
from pillarbox.transports.webhook import WebhookTransport
from tests.integration.webhook.conftest import MakeTransport, server_context
from tests.integration.webhook.receiver import Receiver

TO = WebhookTransport.to()


async def test_a_receiver_with_a_trusted_certificate_gets_events(make: MakeTransport, certificates: Path) -> None:
    async with Receiver(tls=server_context(certificates)) as receiver:
        transport = make(receiver.url(), ca_file=str(certificates / "authority.pem"))
        await transport.ping()
        assert await transport.send([outgoing(str(n), TO) for n in range(5)]) == [None] * 5
        assert len(receiver.requests) == 5


async def test_a_receiver_with_an_untrusted_certificate_gets_nothing(make: MakeTransport, certificates: Path) -> None:
    async with Receiver(tls=server_context(certificates)) as receiver:
        transport = make(receiver.url())
        [result] = await transport.send([outgoing("a", TO)])
        assert isinstance(result, UnavailableError)
        assert "certificate is not trusted" in str(result)
        with pytest.raises(UnavailableError, match="certificate is not trusted"):
            await transport.ping()
        assert receiver.requests == []


async def test_a_receiver_with_a_certificate_of_another_host_gets_nothing(
    make: MakeTransport, certificates: Path
) -> None:
    async with Receiver(tls=server_context(certificates)) as receiver:
        url = f"https://127.0.0.1:{receiver.port}"
        [result] = await make(url, ca_file=str(certificates / "authority.pem")).send([outgoing("a", TO)])
        assert isinstance(result, UnavailableError)
        assert "IP address mismatch" in str(result)
        assert receiver.requests == []


async def test_a_receiver_without_tls_gets_nothing(make: MakeTransport, receiver: Receiver) -> None:
    [result] = await make(f"https://localhost:{receiver.port}").send([outgoing("a", TO)])
    assert isinstance(result, UnavailableError)
    assert receiver.requests == []


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_a_file_without_certificates_is_an_error_at_once(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "ca.pem"
    if content is not None:
        file.write_text(content)
    with pytest.raises(ConfigurationError, match="ca_file"):
        WebhookTransport("https://receiver.example", ca_file=str(file))
