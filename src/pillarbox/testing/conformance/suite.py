"""The suites: all themes, in the order of a message's life."""

from __future__ import annotations

import pytest

from pillarbox.testing.conformance.append import AppendConformance
from pillarbox.testing.conformance.archive import ArchiveConformance
from pillarbox.testing.conformance.attempts import AttemptsConformance
from pillarbox.testing.conformance.audit import AuditConformance
from pillarbox.testing.conformance.capability import StoreCapabilityReport
from pillarbox.testing.conformance.content import StoreContentConformance
from pillarbox.testing.conformance.dead_letters import DeadLetterConformance
from pillarbox.testing.conformance.delays import DelayConformance
from pillarbox.testing.conformance.destinations import DestinationsConformance
from pillarbox.testing.conformance.diagnosis import DiagnosisConformance
from pillarbox.testing.conformance.duplicates import DuplicateConformance
from pillarbox.testing.conformance.editing import EditConformance
from pillarbox.testing.conformance.fencing import FencingConformance
from pillarbox.testing.conformance.fetch import FetchConformance
from pillarbox.testing.conformance.in_flight import InFlightConformance
from pillarbox.testing.conformance.inbox import InboxConformance
from pillarbox.testing.conformance.inspection import InspectionConformance
from pillarbox.testing.conformance.keys import KeysConformance
from pillarbox.testing.conformance.lanes import LanesConformance
from pillarbox.testing.conformance.ledger import LedgerConformance
from pillarbox.testing.conformance.listing import (
    DeadLetterListConformance,
    EventDetailConformance,
    EventListConformance,
)
from pillarbox.testing.conformance.operator_requests import EventStatusConformance, RequestConformance
from pillarbox.testing.conformance.ordering import KeyOrderConformance, KeyQueueConformance
from pillarbox.testing.conformance.ordering_under_faults import OrderingUnderFaultsConformance
from pillarbox.testing.conformance.parked import ParkedConformance
from pillarbox.testing.conformance.replays import ReplayConformance
from pillarbox.testing.conformance.retention import RetentionConformance
from pillarbox.testing.conformance.schema import SchemaConformance
from pillarbox.testing.conformance.second_store import SecondStoreConformance
from pillarbox.testing.conformance.settlement import SettlementConformance
from pillarbox.testing.conformance.split import SplitConformance
from pillarbox.testing.conformance.statistics import DrainConformance, StatisticsConformance
from pillarbox.testing.conformance.time_ranges import TimeRangeConformance
from pillarbox.testing.conformance.wakeup import WakeupConformance


@pytest.mark.asyncio
class StoreConformance(
    AppendConformance,
    StoreContentConformance,
    LanesConformance,
    SecondStoreConformance,
    FencingConformance,
    FetchConformance,
    TimeRangeConformance,
    DelayConformance,
    KeyOrderConformance,
    KeyQueueConformance,
    SettlementConformance,
    AttemptsConformance,
    SplitConformance,
    DuplicateConformance,
    LedgerConformance,
    DeadLetterConformance,
    ParkedConformance,
    DestinationsConformance,
    StatisticsConformance,
    OrderingUnderFaultsConformance,
    RetentionConformance,
    InboxConformance,
    SchemaConformance,
    WakeupConformance,
    StoreCapabilityReport,
):
    """What a relay needs of a store. Inherit this, and define the fixture `harness`."""


@pytest.mark.asyncio
class ListingConformance(
    RequestConformance,
    InFlightConformance,
    EventStatusConformance,
    EditConformance,
    EventListConformance,
    DeadLetterListConformance,
    EventDetailConformance,
    InspectionConformance,
):
    """The part of the operators' half for stores whose capabilities state `listings`, as the memory store does.

    Inherit this alongside `StoreConformance`, and define the fixture `harness`.
    """


@pytest.mark.asyncio
class AdminConformance(
    ListingConformance,
    DrainConformance,
    AuditConformance,
    ArchiveConformance,
    ReplayConformance,
    DiagnosisConformance,
    KeysConformance,
):
    """The whole operators' half, for stores whose capabilities state `admin`.

    Inherit this alongside `StoreConformance`, and define the fixture `harness`.
    """
