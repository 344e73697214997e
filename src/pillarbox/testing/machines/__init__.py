"""State machines that walk a store at random and compare it, step by step, with a model of what must be true.

    messages.py   MessageLife: nothing is lost, nothing comes twice, attempts and order are as they should be
    lanes.py      LaneOwnership: one living owner per lane, epochs only grow, old ones write nothing
    model.py      what must be true of messages, in plain Python and no faster than it reads

    def test_a_long_life() -> None:
        walk(MessageLife, my_harness, settings(max_examples=25, stateful_step_count=25))

Any store can be walked through its harness.
"""

from pillarbox.testing.machines.lanes import LaneOwnership, LaneOwnershipInVirtualTime
from pillarbox.testing.machines.machine import StoreMachine, walk
from pillarbox.testing.machines.messages import MessageLife

__all__ = ["LaneOwnership", "LaneOwnershipInVirtualTime", "MessageLife", "StoreMachine", "walk"]
