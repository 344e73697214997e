from pillarbox.ops.console.throttle import MANY, TRIES, WINDOW, Throttle
from tests.unit.ops.console.test_sessions import Clock


def fails(throttle: Throttle, times: int, *, address: str = "here", name: str = "ada") -> None:
    for _ in range(times):
        assert not throttle.closed(address=address, name=name)
        throttle.failed(address=address, name=name)


async def test_after_too_many_failures_one_waits_a_while() -> None:
    clock = Clock()
    throttle = Throttle(clock=clock)
    fails(throttle, TRIES)
    assert throttle.closed(address="here", name="ada")
    await clock.sleep(WINDOW)
    assert not throttle.closed(address="here", name="ada")


def test_nobody_else_waits_for_it() -> None:
    throttle = Throttle()
    fails(throttle, TRIES)
    assert not throttle.closed(address="here", name="ben")
    assert not throttle.closed(address="there", name="ada")


def test_many_names_from_one_address_and_one_name_from_many_addresses_are_bounded() -> None:
    throttle = Throttle()
    for n in range(MANY):
        fails(throttle, 1, address="guesser", name=f"name {n}")
        fails(throttle, 1, address=f"address {n}", name="root")
    assert throttle.closed(address="guesser", name="ada")
    assert throttle.closed(address="here", name="root")
    assert not throttle.closed(address="here", name="ada")


def test_success_is_forgiving_to_that_name_alone() -> None:
    throttle = Throttle()
    for n in range(MANY - TRIES):
        fails(throttle, 1, name=f"name {n}")
    fails(throttle, TRIES - 1)
    throttle.forget(address="here", name="ada")
    fails(throttle, 1)
    assert throttle.closed(address="here", name="ben")
