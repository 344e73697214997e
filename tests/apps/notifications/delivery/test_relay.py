"""The four channels behind one relay: each arrives, and none is harmed by another."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from sqlalchemy import text

from apps.notifications.delivery.settings import DeliverySettings
from apps.notifications.delivery.settings import MailServer as MailServerAt
from apps.notifications.words import Channel
from pillarbox import Relay
from pillarbox.testing.waiting import eventually
from tests.apps.notifications.delivery.outside import Gateway, MailServer
from tests.apps.notifications.delivery.post import Post

Running = Callable[..., AbstractAsyncContextManager[Relay]]
EVERY = tuple(Channel)


def at_the_end(post: Post, **states: int) -> Callable[[], Awaitable[bool]]:
    """So many deliveries in each of these states, and none in another."""

    async def look() -> bool:
        found = list(post.states().values())
        return {state: found.count(state) for state in found} == states

    return look


async def are_published(post: Post, count: int) -> bool:
    return list(post.states().values()).count("PUBLISHED") == count


async def test_every_channel_arrives_once_and_is_in_the_log(
    database: str, running: Running, mail: MailServer, gateway: Gateway
) -> None:
    with Post.of(database) as post:
        post.settle(1, 2)
        by_email, by_push, by_sms, _ = post.ask(1, *EVERY)
        post.ask(2, Channel.IN_APP)
        async with running(post):
            await eventually(at_the_end(post, PUBLISHED=5), within=90)
        assert post.delivered() == {(1, channel) for channel in EVERY} | {(2, "IN_APP")}
    assert [got.id for got in mail.mails] == [f"<{by_email}@example.org>"]
    assert [(hook.key, hook.message["to"]) for hook in gateway.to("/push")] == [(by_push, "token-1")]
    assert [(hook.key, hook.message["to"]) for hook in gateway.to("/sms")] == [(by_sms, "+39 1")]


async def test_a_broken_mail_server_harms_no_push_and_costs_no_mail(
    post: Post, running: Running, mail: MailServer, gateway: Gateway
) -> None:
    mail.kill()
    post.settle(*range(1, 31))
    for user in range(1, 31):
        post.ask(user, Channel.EMAIL, Channel.PUSH, Channel.SMS, Channel.IN_APP)
    async with running(post):
        await eventually(at_the_end(post, PUBLISHED=90, PENDING=30), within=90)
        assert len(gateway.to("/push")) == len(gateway.to("/sms")) == 30
        charged = post.rows(text("SELECT sum(attempts), count(last_error) FROM delivery_event"))
        assert charged[0][0] == 0
        assert charged[0][1] > 0  # it was tried
        mail.start()
        await eventually(at_the_end(post, PUBLISHED=120), within=90)
    assert sorted(got.to[0] for got in mail.mails) == sorted(f"user{user}@example.org" for user in range(1, 31))


async def test_a_mail_server_that_hangs_keeps_no_push_waiting(
    post: Post, running: Running, settings: DeliverySettings, gateway: Gateway
) -> None:
    post.settle(*range(1, 101))
    for user in range(1, 101):
        post.ask(user, Channel.EMAIL)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        hangs = replace(settings, mail=MailServerAt(host="127.0.0.1", port=silent.getsockname()[1], timeout=90))
        async with running(post, hangs):
            first, _ = await asyncio.wait_for(asyncio.to_thread(silent.accept), 30)  # mails are on their way
            for user in range(1, 101):
                post.ask(user, Channel.PUSH)
            await eventually(lambda: are_published(post, 100), within=60)  # mails hang for longer
            first.close()
            silent.close()  # nothing hangs any more, so that the relay can end
    assert len(gateway.to("/push")) == 100


async def test_a_mail_refused_for_good_is_a_dead_letter_and_the_rest_goes_on(
    post: Post, running: Running, mail: MailServer
) -> None:
    mail.refuse(user1="550 5.1.1 no such user")
    post.settle(1, 2)
    [refused], [taken] = post.ask(1, Channel.EMAIL), post.ask(2, Channel.EMAIL)
    async with running(post):
        await eventually(at_the_end(post, PUBLISHED=1, FAILED=1), within=90)
    assert (post.states()[refused], post.states()[taken]) == ("FAILED", "PUBLISHED")
    assert "550 5.1.1 no such user" in str(post.errors()[refused])
    assert post.delivered() == {(2, "EMAIL")}


async def test_a_mail_put_off_is_tried_again_then_given_up_and_its_neighbour_is_not(
    post: Post, running: Running, mail: MailServer
) -> None:
    mail.refuse(user1="450 mailbox full")
    post.settle(1, 2)
    [put_off], [taken] = post.ask(1, Channel.EMAIL), post.ask(2, Channel.EMAIL)
    async with running(post):
        await eventually(at_the_end(post, PUBLISHED=1, FAILED=1), within=90)
    rows = post.rows(text(f"SELECT attempts FROM delivery_event WHERE event_id = '{put_off}'"))
    assert (post.states()[taken], rows[0][0]) == ("PUBLISHED", 3)


async def test_a_gateway_that_fails_once_gets_the_same_key_again(
    post: Post, running: Running, gateway: Gateway
) -> None:
    gateway.answer = lambda hook: 500 if len(gateway.received) == 1 else 202
    post.settle(1)
    [asked] = post.ask(1, Channel.PUSH)
    async with running(post):
        await eventually(at_the_end(post, PUBLISHED=1), within=90)
    assert [hook.key for hook in gateway.received] == [asked, asked]
    assert post.delivered() == {(1, "PUSH")}


async def test_quiet_hours_hold_a_delivery_back_and_no_other(post: Post, running: Running, gateway: Gateway) -> None:
    post.settle(1)
    post.ask(1, Channel.PUSH, deliver_after=datetime.now(UTC) + timedelta(hours=8))
    post.ask(1, Channel.SMS)
    async with running(post):
        await eventually(at_the_end(post, PUBLISHED=1, PENDING=1), within=90)
    assert [hook.path for hook in gateway.received] == ["/sms"]


async def test_a_user_who_is_gone_is_a_dead_letter(post: Post, running: Running) -> None:
    post.ask(404, *EVERY)
    async with running(post):
        await eventually(at_the_end(post, FAILED=4), within=90)
    assert all("there is no user 404" in str(error) for error in post.errors().values())


async def test_what_is_in_the_log_is_not_sent_again(post: Post, running: Running, gateway: Gateway) -> None:
    """A process that died after writing the log and before settling leaves exactly this behind."""
    post.settle(1)
    [asked] = post.ask(1, Channel.PUSH)
    with post.engine.begin() as connection:
        connection.execute(
            text(
                "INSERT INTO notification_delivery (audience, notification_id, user_id, channel, event_id, attempt,"
                " delivered_at) SELECT 'CUSTOMER', id, 1, 'PUSH', :asked, 1, created_at FROM customer_notification"
            ),
            {"asked": asked},
        )
    async with running(post):
        await eventually(at_the_end(post, PUBLISHED=1), within=90)
    assert gateway.received == []
    assert post.delivered() == {(1, "PUSH")}
