"""For tests of your own and for new adapters; needs the extra `testing`.

    conformance/    what every store, transport and source must do; inherit it, give it a harness
    machines/       state machines that walk a store at random and compare it with a model
    simulation/     an event loop with virtual time and a seeded order: a seed is one schedule, exactly replayable
    waiting.py      wait for a fact, with a bound, instead of sleeping
    memory.py       the memory store under a harness: the shortest example of one

Nothing outside this folder imports it.
"""

import pytest

# The shipped suites are tests too: their asserts are to show values when they fail.
pytest.register_assert_rewrite("pillarbox.testing.conformance", "pillarbox.testing.machines")
