"""Password guessing is slowed down and locked, without locking out other users."""

import asyncio
from pathlib import Path

import pytest

from pillarbox.ops.console import UserLogin, UsersFile
from pillarbox.ops.console.from_settings import make_login
from pillarbox.ops.console.logins import MAX_WAITING, TooManyAttemptsError
from pillarbox.ops.console.throttle import ATTEMPTS, SLOWEST_ADDRESS
from tests.console.accounts import PASSWORD, log_in
from tests.console.conftest import Visit
from tests.integration.cli.conftest import Stock
from tests.unit.ops.console.test_sessions import Clock
from tests.unit.ops.settings.loading import load


async def test_guessing_is_locked_even_if_the_next_guess_is_correct(
    visit: Visit, shop: Stock, login: UserLogin
) -> None:
    visitor = await visit(shop, login=login)
    attempts = [(await log_in(visitor, "vera", f"guess {number}")).status_code for number in range(10)]
    assert attempts == [401] * 10
    assert (await log_in(visitor, "vera")).status_code == 429
    # Other users of that address are not locked, also with HTTP Basic.
    script = await visitor.client.get("/api/v1/status", auth=("olga", PASSWORD))
    assert script.status_code == 200


async def test_wrong_passwords_do_not_lock_out_other_users(visit: Visit, shop: Stock, login: UserLogin) -> None:
    for number in range(1000):
        for name in ("vera", "olga", "ada"):
            login._throttle.add_failure(address=f"203.0.113.{number % 100}", name=name)
    visitor = await visit(shop, login=login)
    assert (await log_in(visitor, "vera")).status_code == 303
    assert (await visitor.client.get("/api/v1/status", auth=("ada", PASSWORD))).status_code == 200


async def test_an_address_that_guesses_is_slowed_down_for_every_name(users: Path) -> None:
    clock = Clock()
    login = UserLogin(UsersFile(users), clock=clock)
    for number in range(1000):
        login._throttle.add_failure(address="203.0.113.9", name=f"name {number}")
    for address, waited in (("203.0.113.10", 0), ("203.0.113.9", SLOWEST_ADDRESS)):
        begun = clock.monotonic()
        assert await login.check("vera", PASSWORD, address=address) is not None
        assert clock.monotonic() - begun == waited


async def test_few_attempts_may_wait_at_an_address_that_guesses(users: Path) -> None:
    login = UserLogin(UsersFile(users), clock=Clock())
    for number in range(ATTEMPTS):
        login._throttle.add_failure(address="203.0.113.9", name=f"name {number}")
    guesses = (login.check(f"name {number}", "a guess", address="203.0.113.9") for number in range(100, 120))
    answers = await asyncio.gather(*guesses, return_exceptions=True)
    assert [type(answer) for answer in answers] == [type(None)] * MAX_WAITING + [TooManyAttemptsError] * (
        20 - MAX_WAITING
    )


@pytest.mark.parametrize("held_in", ["file", "variable"])
async def test_failures_are_counted_per_client_behind_a_trusted_proxy(
    visit: Visit, shop: Stock, users: Path, held_in: str
) -> None:
    users_known = str(users) if held_in == "file" else await asyncio.to_thread(users.read_text)
    given = {f"PILLARBOX_CONSOLE__USERS{'_FILE' if held_in == 'file' else ''}": users_known}
    settings = load(**given, PILLARBOX_CONSOLE__TRUSTED_PROXIES="10.0.0.7,127.0.0.1").console
    visitor = await visit(shop, login=make_login(settings))
    visitor.client.headers["x-forwarded-for"] = "203.0.113.9"
    attempts = [(await log_in(visitor, "vera", f"guess {number}")).status_code for number in range(11)]
    assert attempts == [401] * 10 + [429]
    visitor.client.headers["x-forwarded-for"] = "203.0.113.10"
    assert (await log_in(visitor, "vera")).status_code == 303


async def test_concurrent_guesses_are_locked_too(visit: Visit, shop: Stock, login: UserLogin) -> None:
    visitor = await visit(shop, login=login)
    answers = await asyncio.gather(*(log_in(visitor, "vera", f"guess {number}") for number in range(30)))
    tried = [answer.status_code for answer in answers].count(401)
    assert 10 <= tried <= 11  # two are checked concurrently
    assert (await log_in(visitor, "vera")).status_code == 429


async def test_a_script_may_send_concurrent_requests(visit: Visit, shop: Stock, login: UserLogin) -> None:
    visitor = await visit(shop, login=login)
    asked = [visitor.client.get("/api/v1/status", auth=("vera", PASSWORD)) for _ in range(15)]
    assert {answer.status_code for answer in await asyncio.gather(*asked)} == {200}
