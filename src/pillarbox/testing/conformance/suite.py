"""The suites: every theme in one of two classes, in the order of a message's life."""

from __future__ import annotations

import pytest

from pillarbox.testing.conformance.amend import AmendConformance
from pillarbox.testing.conformance.append import AppendConformance
from pillarbox.testing.conformance.archive import ArchiveConformance
from pillarbox.testing.conformance.attempts import AttemptsConformance
from pillarbox.testing.conformance.audit import AuditConformance
from pillarbox.testing.conformance.beside import BesideConformance
from pillarbox.testing.conformance.browsing import LettersConformance, ListConformance, ShowConformance
from pillarbox.testing.conformance.capability import CapabilityReport
from pillarbox.testing.conformance.content import ContentConformance
from pillarbox.testing.conformance.dead import DeadConformance
from pillarbox.testing.conformance.destinations import DestinationsConformance
from pillarbox.testing.conformance.diagnosis import DiagnosisConformance
from pillarbox.testing.conformance.fencing import FencingConformance
from pillarbox.testing.conformance.in_flight import InFlightConformance
from pillarbox.testing.conformance.inbox import InboxConformance
from pillarbox.testing.conformance.inspection import InspectionConformance
from pillarbox.testing.conformance.journey import JourneyConformance
from pillarbox.testing.conformance.keys import KeysConformance
from pillarbox.testing.conformance.lanes import LanesConformance
from pillarbox.testing.conformance.ledger import LedgerConformance
from pillarbox.testing.conformance.order import BehindConformance, LinesConformance
from pillarbox.testing.conformance.parked import ParkedConformance
from pillarbox.testing.conformance.people import FindConformance, RequestConformance
from pillarbox.testing.conformance.ranges import RangesConformance
from pillarbox.testing.conformance.reading import ReadingConformance
from pillarbox.testing.conformance.repeats import RepeatsConformance
from pillarbox.testing.conformance.replays import ReplayConformance
from pillarbox.testing.conformance.schema import SchemaConformance
from pillarbox.testing.conformance.settlement import SettlementConformance
from pillarbox.testing.conformance.split import SplitConformance
from pillarbox.testing.conformance.stats import DrainConformance, StatsConformance
from pillarbox.testing.conformance.upkeep import UpkeepConformance
from pillarbox.testing.conformance.waiting import WaitingConformance
from pillarbox.testing.conformance.wakeup import WakeupConformance


@pytest.mark.asyncio
class StoreConformance(
    AppendConformance,
    ContentConformance,
    LanesConformance,
    BesideConformance,
    FencingConformance,
    ReadingConformance,
    RangesConformance,
    WaitingConformance,
    BehindConformance,
    LinesConformance,
    SettlementConformance,
    AttemptsConformance,
    SplitConformance,
    RepeatsConformance,
    LedgerConformance,
    DeadConformance,
    ParkedConformance,
    DestinationsConformance,
    RequestConformance,
    InFlightConformance,
    FindConformance,
    AmendConformance,
    ListConformance,
    LettersConformance,
    ShowConformance,
    InspectionConformance,
    StatsConformance,
    JourneyConformance,
    UpkeepConformance,
    InboxConformance,
    SchemaConformance,
    WakeupConformance,
    CapabilityReport,
):
    """What a relay needs of a store, and what of the operators' half tests and simulation need.

    Inherit this, and define the fixture `harness`.
    """


@pytest.mark.asyncio
class AdminConformance(
    DrainConformance,
    AuditConformance,
    ArchiveConformance,
    ReplayConformance,
    DiagnosisConformance,
    KeysConformance,
):
    """The rest of the operators' half, for stores whose capabilities state `admin`.

    Inherit this beside `StoreConformance`, and define the fixture `harness`.
    """
