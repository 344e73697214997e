"""One behavioural suite for every store, shipped so that a new adapter inherits it.

    class TestMyStore(StoreConformance):
        @pytest.fixture
        async def harness(self) -> AsyncIterator[StoreHarness]:
            async with my_harness() as harness:
                yield harness

A store passes when a relay cannot tell it from any other. What it truly cannot do it says in its capabilities;
the tests that need it are skipped with that reason.
"""

from pillarbox.testing.conformance.harness import StoreHarness
from pillarbox.testing.conformance.suite import StoreConformance

__all__ = ["StoreConformance", "StoreHarness"]
