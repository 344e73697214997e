"""The behavioural suite for sources; a new adapter inherits it.

    class TestMySource(SourceConformance):
        @pytest.fixture
        async def harness(self) -> AsyncIterator[SourceHarness]:
            harness = MyHarness()
            yield harness
            await harness.source.aclose()

A source passes if a consumer cannot distinguish it from another. The harness states in its capabilities what the source
does not support; the tests that need it are skipped with that reason.
"""

from pillarbox.testing.conformance.sources.harness import SourceCapabilities, SourceDeadLetter, SourceHarness
from pillarbox.testing.conformance.sources.receive import incoming
from pillarbox.testing.conformance.sources.suite import SourceConformance

__all__ = ["SourceCapabilities", "SourceConformance", "SourceDeadLetter", "SourceHarness", "incoming"]
