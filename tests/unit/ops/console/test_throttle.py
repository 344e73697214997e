from pillarbox.ops.console.throttle import ATTEMPTS, FAILURE_WINDOW, SLOW, SLOWEST_ADDRESS, SLOWEST_NAME, Throttle
from tests.unit.ops.console.test_sessions import Clock


def fails(throttle: Throttle, times: int, *, address: str = "here", name: str = "ada") -> None:
    for _ in range(times):
        throttle.add_failure(address=address, name=name)


async def test_after_too_many_failures_a_login_must_wait() -> None:
    clock = Clock()
    throttle = Throttle(clock=clock)
    fails(throttle, ATTEMPTS - 1)
    assert not throttle.is_locked(address="here", name="ada")
    fails(throttle, 1)
    assert throttle.is_locked(address="here", name="ada")
    await clock.sleep(FAILURE_WINDOW)
    assert not throttle.is_locked(address="here", name="ada")


def test_other_addresses_are_not_delayed() -> None:
    throttle = Throttle()
    fails(throttle, ATTEMPTS)
    assert not throttle.is_locked(address="here", name="ben")
    assert not throttle.is_locked(address="there", name="ada")


def test_no_number_of_failures_elsewhere_locks_or_delays_a_name() -> None:
    throttle = Throttle()
    for n in range(1000):
        fails(throttle, 1, address=f"address {n}", name="ada")
    assert not throttle.is_locked(address="here", name="ada")
    assert throttle.delay(address="here", name="ada") == 0


def test_an_address_with_many_names_is_slowed_down() -> None:
    throttle = Throttle()
    for n in range(SLOW):
        fails(throttle, 1, name=f"name {n}")
    assert throttle.delay(address="here", name="ada") == 0
    for n in range(1000):
        fails(throttle, 1, name=f"name {n}")
    assert not throttle.is_locked(address="here", name="ada")
    assert throttle.delay(address="here", name="ada") == SLOWEST_ADDRESS
    assert throttle.delay(address="there", name="ada") == 0


def test_a_name_guessed_from_many_addresses_is_slowed_down_at_an_address_that_guesses() -> None:
    throttle = Throttle()
    for n in range(1000):
        fails(throttle, 1, address=f"address {n}", name="ada")
    fails(throttle, ATTEMPTS, name="ben")
    assert throttle.delay(address="here", name="ada") == SLOWEST_NAME
    assert throttle.delay(address="here", name="cleo") == 0


def test_the_number_of_counted_pairs_is_bounded() -> None:
    throttle = Throttle()
    for n in range(20_000):
        fails(throttle, 1, address=f"address {n}", name=f"name {n}")
    assert len(throttle._failures) <= 10_000


def test_a_successful_login_resets_the_failures_of_its_name_only() -> None:
    throttle = Throttle()
    fails(throttle, ATTEMPTS)
    fails(throttle, ATTEMPTS, name="ben")
    throttle.reset(address="here", name="ada")
    assert not throttle.is_locked(address="here", name="ada")
    assert throttle.is_locked(address="here", name="ben")
    assert throttle.is_guessing("here")
