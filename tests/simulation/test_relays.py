"""Relays under seeded schedules: crashes at any point, outages, late and lost results, machines that freeze, relays
that join and leave.

A failing seed prints its plan; `python -m tests.simulation.replay SEED` replays it alone. The last tests remove a guard
of the relay and show that the checker detects it.
"""

from __future__ import annotations

import os

import pytest

from pillarbox.core.transport import Transport
from pillarbox.relay.in_flight import InFlight, Item
from pillarbox.relay.placement import FetchedMessage, Placer
from pillarbox.relay.send import Batch, Sender, Sends
from tests.simulation.replay import run

SCHEDULES = int(os.environ.get("SIMULATION_SCHEDULES", "200"))
AT_ONCE = 50
FOUND_A_DEFECT = (24, 54, 233, 264, 268, 305, 675, 888)
"""Seeds that failed once. They always run."""
ENOUGH_TO_NOTICE = 60


@pytest.mark.parametrize("first", range(0, SCHEDULES, AT_ONCE))
def test_nothing_is_lost_and_order_is_kept(first: int) -> None:
    for seed in range(first, min(first + AT_ONCE, SCHEDULES)):
        run(seed)


@pytest.mark.parametrize("first", range(0, SCHEDULES // 4, AT_ONCE))
def test_pipelined_nothing_is_lost_and_only_rejected_events_are_overtaken(first: int) -> None:
    for seed in range(first, min(first + AT_ONCE, SCHEDULES // 4)):
        run(seed, pipelined=True)


@pytest.mark.parametrize("seed", FOUND_A_DEFECT)
def test_schedules_that_once_found_a_defect_pass(seed: int) -> None:
    run(seed)


def detects(guarantee: str, *, pipelined: bool = False) -> bool:
    """Return whether the checker reports a violation of this guarantee in any of a few schedules."""
    for seed in range(ENOUGH_TO_NOTICE):
        try:
            run(seed, pipelined=pipelined)
        except AssertionError as error:
            if any(line.startswith(f"{guarantee}:") for line in str(error).splitlines()):
                return True
    return False


def test_settling_before_the_confirm_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    send = Sender._send

    async def early(self: Sender, transport: Transport, batch: Batch, sends: Sends) -> None:
        self._decider.decide_batch(batch, [None] * len(batch))
        await send(self, transport, batch, sends)

    monkeypatch.setattr(Sender, "_send", early)
    assert detects("lost")


@pytest.mark.parametrize("pipelined", [False, True], ids=["strict", "pipelined"])
def test_an_overtaken_retry_is_detected(monkeypatch: pytest.MonkeyPatch, pipelined: bool) -> None:
    def overtaken(self: InFlight, item: Item) -> list[Item]:
        self.confirmed(item)
        return []

    monkeypatch.setattr(InFlight, "stopped", overtaken)
    assert detects("order", pipelined=pipelined)


def test_messages_that_do_not_wait_for_their_key_are_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    async def none(self: Placer, fetched: list[FetchedMessage]) -> set[tuple[int, str]]:
        return set()

    monkeypatch.setattr(Placer, "_held_back", none)
    assert detects("order")


def test_sending_a_whole_queue_at_once_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    def all_at_once(self: InFlight, destination: str, limit: int, *, max_bytes: int, pipelined: bool) -> list[Item]:
        going: list[Item] = []
        queue = self._sendable.pop(destination)
        while queue and len(going) < limit:
            line = queue.popleft()
            line.queued = False
            for item in line.waiting:
                item.queued = False
            going += line.waiting
            line.sending, line.waiting = dict.fromkeys(line.waiting), []
        return going

    monkeypatch.setattr(InFlight, "sendable", all_at_once)
    assert detects("order")
