"""One behavioural suite for every source, shipped so that a new adapter inherits it.

    class TestMySource(SourceConformance):
        @pytest.fixture
        async def harness(self) -> AsyncIterator[SourceHarness]:
            harness = MyHarness()
            yield harness
            await harness.source.aclose()

A source passes when a consumer cannot tell it from any other. What it truly cannot do the harness says in its
capabilities; the tests that need it are skipped with that reason.
"""

from pillarbox.testing.conformance.sources.harness import Letter, SourceCapabilities, SourceHarness
from pillarbox.testing.conformance.sources.receive import incoming
from pillarbox.testing.conformance.sources.suite import SourceConformance

__all__ = ["Letter", "SourceCapabilities", "SourceConformance", "SourceHarness", "incoming"]
