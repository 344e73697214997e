"""For your own tests and for new adapters; needs the extra `testing`.

    conformance/    what every store, transport and source must do: inherit a suite and provide a harness
    machines/       state machines that use a store at random and compare it with a model
    simulation/     an event loop with virtual time and a seeded order: a seed reproduces a schedule exactly
    waiting.py      wait for a condition with a timeout, instead of sleeping
    memory.py       the harness of the memory store: the shortest example

No module outside this folder imports it.
"""

import pytest

# The shipped suites are tests: pytest shows the values of their failed asserts.
pytest.register_assert_rewrite("pillarbox.testing.conformance", "pillarbox.testing.machines")
