"""A session that ended while a page was open: the page leads to the login and back."""

import httpx
import pytest

from pillarbox.ops.console import User
from pillarbox.ops.console.access import Role
from pillarbox.ops.console.logins import UserLogin
from pillarbox.ops.console.passwords import hashed
from pillarbox.ops.console.users import UserEntry
from tests.console.conftest import Visit
from tests.integration.cli.conftest import Stock

ADA = UserEntry(user=User(name="ada", role=Role.ADMIN), hash=hashed("correct horse"))


@pytest.fixture
async def stranger(visit: Visit, stock: Stock) -> httpx.AsyncClient:
    """A client whose session has ended."""
    return (await visit(stock, login=UserLogin(lambda: {"ada": ADA}))).client


async def test_a_partial_request_of_an_ended_session_reloads_the_page(stranger: httpx.AsyncClient) -> None:
    answer = await stranger.get("/events?live=1", headers={"hx-request": "true"})
    assert (answer.status_code, answer.headers["hx-refresh"]) == (401, "true")
    assert (await stranger.get("/events?live=1")).headers["location"] == "/login?next=%2Fevents%3Flive%3D1"


@pytest.mark.parametrize(
    ("path", "wanted"), [("/destinations/override", "/destinations"), ("/dead/decide", "/dead"), ("/everything", "/")]
)
async def test_a_form_of_an_ended_session_leads_back_to_its_page(
    stranger: httpx.AsyncClient, path: str, wanted: str
) -> None:
    answer = await stranger.post(path, data={"action": "pause"})
    assert answer.status_code == 303
    assert httpx.URL(answer.headers["location"]).params["next"] == wanted
