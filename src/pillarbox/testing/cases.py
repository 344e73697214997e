"""The fixtures of the pytest plugin for classes of `unittest`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from unittest import TestCase

from pillarbox.core.transport import Transport
from pillarbox.testing.capture import CapturedOutbox
from pillarbox.testing.clock import VirtualClock
from pillarbox.testing.recorded import RecordAssertions, RecordedEvents
from pillarbox.testing.relay import MemoryRelay

if TYPE_CHECKING:
    _Case = TestCase
else:
    _Case = object  # the class of the test is the TestCase


class CapturedOutboxMixin(RecordAssertions, _Case):
    """Captures what each test of the class records: `class TestOrders(CapturedOutboxMixin, unittest.TestCase)`.

    It stands before the class of `unittest`, or of Django. A `setUp` of your own calls `super().setUp()`.
    """

    captured_outbox: CapturedOutbox

    def setUp(self) -> None:
        super().setUp()
        self.captured_outbox = self.enterContext(CapturedOutbox())

    @property
    def events(self) -> RecordedEvents:
        """The events that were committed in memory; see `CapturedOutbox.events`."""
        return self.captured_outbox.events

    @property
    def virtual_clock(self) -> VirtualClock:
        """The clock of the captured outbox and of the memory relay."""
        return self.captured_outbox.clock

    def memory_relay(self, transport: Transport | Mapping[str, Transport], **arguments: Any) -> MemoryRelay:
        """A relay that delivers what was recorded; the arguments are those of `MemoryRelay`."""
        return MemoryRelay(self.captured_outbox, transport, **arguments)
