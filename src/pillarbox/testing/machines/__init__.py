"""State machines that use a store at random and compare it, step by step, with a model.

    messages.py   MessageLifecycle: no message is lost or delivered twice; attempts and order are correct
    lanes.py      LaneOwnership: one live owner per lane, epochs only grow, stale epochs write nothing
    model.py      the model of messages, in plain Python

    def test_the_store_agrees_with_the_model() -> None:
        run_machine(MessageLifecycle, my_harness, settings(max_examples=25, stateful_step_count=25))

Any store can be tested through its harness.
"""

try:
    from pillarbox.testing.machines.lanes import LaneOwnership, LaneOwnershipInVirtualTime
    from pillarbox.testing.machines.machine import StoreMachine, run_machine
    from pillarbox.testing.machines.messages import MessageLifecycle
except ImportError as missing:
    raise ImportError('the state machines need hypothesis: pip install "pillarbox[testing]"') from missing

__all__ = ["LaneOwnership", "LaneOwnershipInVirtualTime", "MessageLifecycle", "StoreMachine", "run_machine"]
