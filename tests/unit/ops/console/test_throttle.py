from pillarbox.ops.console.throttle import TRIES, WINDOW, Throttle
from tests.unit.ops.console.test_sessions import Clock


async def test_after_too_many_failures_one_waits_a_while() -> None:
    clock = Clock()
    throttle = Throttle(clock=clock)
    for _ in range(TRIES):
        assert not throttle.closed("ada")
        throttle.failed("ada")
    assert throttle.closed("ada")
    assert throttle.closed("ben", "ada")
    assert not throttle.closed("ben")
    await clock.sleep(WINDOW)
    assert not throttle.closed("ada")


def test_success_is_forgiving() -> None:
    throttle = Throttle()
    for _ in range(TRIES):
        throttle.failed("ada")
    throttle.forget("ada")
    assert not throttle.closed("ada")
