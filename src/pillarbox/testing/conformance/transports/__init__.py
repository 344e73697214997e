"""One behavioural suite for every transport, shipped so that a new adapter inherits it.

    class TestMyTransport(TransportConformance):
        @pytest.fixture
        async def harness(self) -> AsyncIterator[TransportHarness]:
            harness = MyHarness()
            yield harness
            await harness.transport.aclose()

A transport passes when a relay cannot tell it from any other. What it truly cannot do the harness says in its
capabilities; the tests that need it are skipped with that reason.
"""

from pillarbox.testing.conformance.transports.harness import Arrived, TransportCapabilities, TransportHarness
from pillarbox.testing.conformance.transports.sending import outgoing
from pillarbox.testing.conformance.transports.suite import TransportConformance

__all__ = ["Arrived", "TransportCapabilities", "TransportConformance", "TransportHarness", "outgoing"]
