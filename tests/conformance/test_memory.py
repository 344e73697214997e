"""The memory store fulfils the contract of all stores."""

from __future__ import annotations

import pytest

from pillarbox.testing.conformance import ListingConformance, StoreConformance, StoreHarness
from pillarbox.testing.memory import MemoryHarness


class TestMemoryStore(StoreConformance, ListingConformance):
    @pytest.fixture
    def harness(self) -> StoreHarness:
        return MemoryHarness()


class TestMemoryStoreOfOneLane(StoreConformance, ListingConformance):
    @pytest.fixture
    def harness(self) -> StoreHarness:
        return MemoryHarness(lanes=1)
