"""The behavioural suites for every store, shipped so that a new adapter inherits them.

    class TestMyStore(StoreConformance, AdminConformance):
        @pytest.fixture
        async def harness(self) -> AsyncIterator[StoreHarness]:
            async with my_harness() as harness:
                yield harness

`StoreConformance` is the contract of the relay's half: a store passes if a relay cannot distinguish it from another.
`AdminConformance` is the contract of the operators' half; a store without it states `admin=False` in its capabilities
and inherits the first suite only, or that and `ListingConformance` if it states `listings`. It states there, too, what
else it does not support: the tests that need it are skipped with that reason.
"""

try:
    from pillarbox.testing.conformance.harness import StoreHarness
    from pillarbox.testing.conformance.suite import AdminConformance, ListingConformance, StoreConformance
except ImportError as missing:
    raise ImportError('the conformance suites need pytest: pip install "pillarbox[testing]"') from missing

__all__ = ["AdminConformance", "ListingConformance", "StoreConformance", "StoreHarness"]
