"""When a relay pauses notifications because producers send too many, and for how long."""

from pillarbox.stores.postgres.wakeup import LIMIT_SECONDS, MAX_NOTIFICATIONS, MAX_PAUSE, MIN_PAUSE, NotificationLimit


def counted(limit: NotificationLimit, times: int, *, start: float, every: float, sessions: int = 2) -> float:
    """Count notifications of several sessions; returns the time of the last one."""
    for number in range(times):
        limit.count(start + number * every, backend=number % sessions + 1)
    return start + (times - 1) * every


def test_the_allowed_number_does_not_pause_notifications() -> None:
    limit = NotificationLimit()
    now = counted(limit, MAX_NOTIFICATIONS, start=100.0, every=0.0)
    assert not limit.exceeded(now)
    limit.count(now, backend=3)
    assert limit.exceeded(now)


def test_one_session_never_pauses_notifications() -> None:
    limit = NotificationLimit()
    now = counted(limit, 10 * MAX_NOTIFICATIONS, start=100.0, every=0.0, sessions=1)
    assert not limit.exceeded(now)


def test_the_same_number_over_a_longer_time_does_not_pause_notifications() -> None:
    limit = NotificationLimit()
    now = counted(limit, 10 * MAX_NOTIFICATIONS, start=100.0, every=1.1 * LIMIT_SECONDS / MAX_NOTIFICATIONS)
    assert not limit.exceeded(now)


def test_a_past_burst_does_not_pause_notifications() -> None:
    limit = NotificationLimit()
    now = counted(limit, 2 * MAX_NOTIFICATIONS, start=100.0, every=0.0)
    assert not limit.exceeded(now + 2 * LIMIT_SECONDS)


def test_notifications_of_open_transactions_do_not_start_another_pause() -> None:
    limit = NotificationLimit()
    limit.begin_pause(100.0)
    now = counted(limit, 2 * MAX_NOTIFICATIONS, start=100.0, every=0.0)
    assert not limit.exceeded(now)
    limit.end_pause(now)
    assert not limit.exceeded(now)
    assert limit.pause_left(now) == 0


def test_a_pause_lasts_until_it_is_ended() -> None:
    limit = NotificationLimit()
    assert limit.pause_left(100.0) == 0
    limit.begin_pause(100.0)
    assert round(limit.pause_left(100.0), 6) == MIN_PAUSE
    assert limit.pause_left(200.0) > 0
    limit.end_pause(200.0)
    assert limit.pause_left(200.0) == 0


def test_pauses_grow_under_load_and_reset_afterwards() -> None:
    limit = NotificationLimit()
    now, pauses = 100.0, []
    for _ in range(6):
        limit.begin_pause(now)
        pauses.append(round(limit.pause_left(now), 6))
        now += pauses[-1]
        limit.end_pause(now)
        now += LIMIT_SECONDS
    assert pauses == [MIN_PAUSE, 0.2, MAX_PAUSE, MAX_PAUSE, MAX_PAUSE, MAX_PAUSE]
    limit.begin_pause(now + 1)
    assert round(limit.pause_left(now + 1), 6) == MIN_PAUSE
