"""The behavioural suites for every store, shipped so that a new adapter inherits them.

    class TestMyStore(StoreConformance, AdminConformance):
        @pytest.fixture
        async def harness(self) -> AsyncIterator[StoreHarness]:
            async with my_harness() as harness:
                yield harness

`StoreConformance` is the contract of the relay's half: a store passes when a relay cannot tell it from any other.
`AdminConformance` is the contract of the operators' half; a store without it states `admin=False` in its capabilities
and inherits the first suite only. What else a store cannot do it states there, too; the tests that need it are skipped
with that reason.
"""

from pillarbox.testing.conformance.harness import StoreHarness
from pillarbox.testing.conformance.suite import AdminConformance, StoreConformance

__all__ = ["AdminConformance", "StoreConformance", "StoreHarness"]
