"""The time of the server between two replies to TIME, on a host whose wall clock says anything."""

import pytest

from pillarbox.core.errors import UnavailableError
from pillarbox.transports.redis.server_clock import READ_EVERY, ServerClock

TOLD = 1_700_000_000


class Elapsed:
    """The seconds since the host started, which only the test advances."""

    def __init__(self) -> None:
        self.seconds = 1_000.0

    def __call__(self) -> float:
        return self.seconds


def test_the_time_goes_on_from_the_reply_of_the_server() -> None:
    elapsed = Elapsed()
    clock = ServerClock(elapsed)
    clock.tell(TOLD, 250_000)
    assert clock.now_ms() == TOLD * 1000 + 250
    elapsed.seconds += 10
    assert clock.now_ms() == (TOLD + 10) * 1000 + 250


@pytest.mark.parametrize("refused", [False, True])
def test_the_time_is_read_once_a_minute(refused: bool) -> None:
    elapsed = Elapsed()
    clock = ServerClock(elapsed)
    stale = [clock.is_stale]
    if refused:
        clock.refuse("NOPERM")
    else:
        clock.tell(TOLD, 0)
    for seconds in (READ_EVERY - 1, 1):
        elapsed.seconds += seconds
        stale.append(clock.is_stale)
    assert stale == [True, False, True]


def test_a_clock_of_the_server_that_was_set_counts_from_the_next_reply() -> None:
    elapsed = Elapsed()
    clock = ServerClock(elapsed)
    clock.tell(TOLD, 0)
    clock.tell(TOLD - 3_600, 0)
    assert clock.now_ms() == (TOLD - 3_600) * 1000


def test_without_the_time_of_the_server_there_is_none() -> None:
    clock = ServerClock(Elapsed())
    with pytest.raises(UnavailableError, match="not read yet"):
        clock.now_ms()
    clock.tell(TOLD, 0)
    clock.refuse("NOPERM no permission")
    with pytest.raises(UnavailableError, match=r"NOPERM no permission.*\+time"):
        clock.now_ms()
