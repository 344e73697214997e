"""A store without the operator interface fulfils the contract of the relay: it states so in its capabilities."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pillarbox import ConfigurationError
from pillarbox.adapters import NoAdmin, StoreConformance, StoreHarness
from pillarbox.stores.memory import MemoryStore
from pillarbox.testing.memory import MemoryHarness


class ToyStore(MemoryStore):
    """The memory store without what operators need."""

    def _wire(self, *args: Any, **kwargs: Any) -> None:
        super()._wire(*args, **kwargs)
        self.capabilities = replace(self.capabilities, listings=False, requests=frozenset())
        self.admin = NoAdmin("toy://")


class ToyHarness(MemoryHarness):
    def __init__(self) -> None:
        super().__init__(store=ToyStore())


class TestStoreWithoutOperatorInterface(StoreConformance):
    @pytest.fixture
    def harness(self) -> StoreHarness:
        return ToyHarness()

    async def test_operator_requests_raise_a_clear_error(self, harness: StoreHarness) -> None:
        with pytest.raises(ConfigurationError, match=r"toy:// does not support dead letters: it does not implement"):
            _ = harness.store.admin.dead_letters
