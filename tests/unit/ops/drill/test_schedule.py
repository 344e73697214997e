"""The schedule of faults."""

from __future__ import annotations

from itertools import islice

from pillarbox.ops.cli.drill import KINDS as OFFERED
from pillarbox.ops.drill.schedule import DESCRIPTIONS, KINDS, schedule


def test_a_seed_repeats_the_schedule() -> None:
    once, again, other = (list(islice(schedule(seed, KINDS, interval=1), 50)) for seed in (7, 7, 8))
    assert once == again != other


def test_every_round_contains_every_kind_and_the_first_fault_is_a_kill() -> None:
    planned = list(islice(schedule(7, ("kill", "drain", "freeze"), interval=1), 7))
    assert planned[0].kind == "kill"
    assert {fault.kind for fault in planned} == {"kill", "drain", "freeze"}


def test_the_command_offers_every_kind() -> None:
    assert OFFERED == KINDS == tuple(DESCRIPTIONS)
