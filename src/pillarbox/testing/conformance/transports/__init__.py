"""The behavioural suite for transports; a new adapter inherits it.

    class TestMyTransport(TransportConformance):
        @pytest.fixture
        async def harness(self) -> AsyncIterator[TransportHarness]:
            harness = MyHarness()
            yield harness
            await harness.transport.aclose()

A transport passes if a relay cannot distinguish it from another. The harness states in its capabilities what the
transport does not support; the tests that need it are skipped with that reason.
"""

from pillarbox.testing.conformance.transports.harness import Arrived, TransportCapabilities, TransportHarness
from pillarbox.testing.conformance.transports.sending import outgoing
from pillarbox.testing.conformance.transports.suite import TransportConformance

__all__ = ["Arrived", "TransportCapabilities", "TransportConformance", "TransportHarness", "outgoing"]
