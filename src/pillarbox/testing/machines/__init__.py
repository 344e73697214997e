"""State machines that use a store at random and compare it, step by step, with a model.

    messages.py   MessageLife: no message is lost or delivered twice; attempts and order are correct
    lanes.py      LaneOwnership: one live owner per lane, epochs only grow, stale epochs write nothing
    model.py      the model of messages, in plain Python

    def test_a_long_life() -> None:
        walk(MessageLife, my_harness, settings(max_examples=25, stateful_step_count=25))

Any store can be tested through its harness.
"""

from pillarbox.testing.machines.lanes import LaneOwnership, LaneOwnershipInVirtualTime
from pillarbox.testing.machines.machine import StoreMachine, walk
from pillarbox.testing.machines.messages import MessageLife

__all__ = ["LaneOwnership", "LaneOwnershipInVirtualTime", "MessageLife", "StoreMachine", "walk"]
