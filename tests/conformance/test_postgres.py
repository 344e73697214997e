"""The PostgreSQL store fulfils the contract of all stores."""

from collections.abc import AsyncIterator
from contextlib import ExitStack

import pytest

from pillarbox.stores.postgres import low_water_marks
from pillarbox.testing.conformance import AdminConformance, StoreConformance
from pillarbox.testing.conformance.fetch import FetchConformance
from pillarbox.testing.conformance.in_flight import InFlightConformance
from pillarbox.testing.conformance.operator_requests import RequestConformance
from pillarbox.testing.conformance.ordering import KeyOrderConformance, KeyQueueConformance
from pillarbox.testing.conformance.ordering_under_faults import OrderingUnderFaultsConformance
from pillarbox.testing.conformance.parked import ParkedConformance
from pillarbox.testing.conformance.settlement import SettlementConformance
from pillarbox.testing.conformance.split import SplitConformance
from tests.conformance.harnesses import LowWaterMarksHarness, PostgresHarness
from tests.databases import cloned
from tests.servers.postgres import PostgresServer


class TestPostgresStore(StoreConformance, AdminConformance):
    @pytest.fixture
    async def harness(self, postgres_server: PostgresServer, postgres_url: str) -> AsyncIterator[PostgresHarness]:
        with ExitStack() as databases:
            harness = PostgresHarness(postgres_url, lambda: databases.enter_context(cloned(postgres_server, None)))
            yield harness
            await harness.aclose()


class TestPostgresStoreFromLowWaterMarks(
    FetchConformance,
    InFlightConformance,
    KeyOrderConformance,
    KeyQueueConformance,
    OrderingUnderFaultsConformance,
    ParkedConformance,
    RequestConformance,
    SettlementConformance,
    SplitConformance,
):
    """What concerns fetches, with a search for low-water marks before every fetch."""

    @pytest.fixture
    async def harness(self, postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[LowWaterMarksHarness]:
        monkeypatch.setattr(low_water_marks, "SEARCH_EVERY", 0.0)
        harness = LowWaterMarksHarness(postgres_url)
        yield harness
        await harness.aclose()
