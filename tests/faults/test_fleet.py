"""More relays, fewer relays, new relays for old ones: on the healthy path nothing is sent twice."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event

from tests.faults.stage import Stage, assert_nothing_lost

EVENTS = 6_000


def test_from_one_relay_to_four_to_two(stage: Stage) -> None:
    fleet = [stage.start()]
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(stage.write, EVENTS)
        fleet += [stage.start() for _ in range(3)]
        stage.wait_until(lambda: all(stage.lanes_of(relay) == 16 for relay in fleet), what="each has its share")
        for relay in fleet[:2]:
            relay.terminate()
        assert [relay.wait() for relay in fleet[:2]] == [0, 0]
        stage.wait_until(lambda: all(stage.lanes_of(relay) == 32 for relay in fleet[2:]), what="two share the lanes")
        writing.result()
    stage.wait_drained()
    assert_nothing_lost(stage.judge(), most_duplicates=0)


def test_a_rolling_restart(stage: Stage) -> None:
    fleet = [stage.start() for _ in range(3)]
    over = Event()

    def write_until_over() -> None:
        while not over.is_set():
            stage.write(200)

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write_until_over)
        try:
            for old in fleet:
                new = stage.start()
                stage.freeze_at_work(old)
                old.terminate()
                old.thaw()
                assert old.wait() == 0
                stage.wait_until(lambda new=new: bool(stage.lanes_of(new)), what=f"{new.name} has lanes")
        finally:
            over.set()
        writing.result()
    stage.wait_drained()
    assert_nothing_lost(stage.judge(), most_duplicates=0)
