"""For the tests of your service, and for new adapters; the suites and machines need the extra `testing`.

    plugin.py       the pytest plugin: captured_outbox, memory_relay, virtual_clock, and servers on request
    cases.py        the same for classes of unittest
    capture.py      CapturedOutbox: what was recorded; recorded.py, matching.py: assertions that explain their failure
    relay.py        MemoryRelay: delivers what was recorded, on the VirtualClock of clock.py
    conformance/    what every store, transport and source must do: inherit a suite and provide a harness
    machines/       state machines that use a store at random and compare it with a model
    simulation/     an event loop with virtual time and a seeded order: a seed reproduces a schedule exactly
    waiting.py      wait for a condition with a timeout, instead of sleeping
    memory.py       the harness of the memory store: the shortest example

No module outside this folder imports it. The names are loaded when they are first used: pytest imports this package
with the plugin, in every test run of every project that has Pillarbox installed.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pillarbox.lazy_names import lazy_names

if TYPE_CHECKING:
    from pillarbox.testing.capture import CapturedOutbox
    from pillarbox.testing.cases import CapturedOutboxMixin
    from pillarbox.testing.clock import VirtualClock
    from pillarbox.testing.matching import RecordedEvent
    from pillarbox.testing.recorded import RecordedEvents
    from pillarbox.testing.relay import MemoryRelay, RelayRun

__all__ = [
    "CapturedOutbox",
    "CapturedOutboxMixin",
    "MemoryRelay",
    "RecordedEvent",
    "RecordedEvents",
    "RelayRun",
    "VirtualClock",
]

if not TYPE_CHECKING:  # a type checker that saw it would believe every name
    __getattr__ = lazy_names(
        __name__,
        {
            "CapturedOutbox": "capture",
            "CapturedOutboxMixin": "cases",
            "MemoryRelay": "relay",
            "RecordedEvent": "matching",
            "RecordedEvents": "recorded",
            "RelayRun": "relay",
            "VirtualClock": "clock",
        },
    )

if "pytest" in sys.modules:
    import pytest

    # The shipped suites are tests: pytest shows the values of their failed asserts.
    pytest.register_assert_rewrite("pillarbox.testing.conformance", "pillarbox.testing.machines")
