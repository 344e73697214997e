"""The four channels of one relay: each delivers, and none affects another."""

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
from apps.notifications.domain import Channel
from pillarbox import Relay
from pillarbox.testing.waiting import eventually
from tests.apps.notifications.delivery.delivery_database import Deliveries
from tests.apps.notifications.delivery.servers import Gateway, MailServer

Running = Callable[..., AbstractAsyncContextManager[Relay]]
EVERY = tuple(Channel)


def all_in_states(deliveries: Deliveries, **states: int) -> Callable[[], Awaitable[bool]]:
    """A condition: exactly these numbers of deliveries by state."""

    async def check() -> bool:
        found = list(deliveries.states().values())
        return {state: found.count(state) for state in found} == states

    return check


async def are_published(deliveries: Deliveries, count: int) -> bool:
    return list(deliveries.states().values()).count("PUBLISHED") == count


async def test_every_channel_delivers_once_and_writes_the_log(
    database: str, running: Running, mail: MailServer, gateway: Gateway
) -> None:
    with Deliveries.of(database) as deliveries:
        deliveries.add_users(1, 2)
        by_email, by_push, by_sms, _ = deliveries.request(1, *EVERY)
        deliveries.request(2, Channel.IN_APP)
        async with running(deliveries):
            await eventually(all_in_states(deliveries, PUBLISHED=5), within=90)
        assert deliveries.delivered() == {(1, channel) for channel in EVERY} | {(2, "IN_APP")}
    assert [got.id for got in mail.mails] == [f"<{by_email}@example.org>"]
    assert [(hook.key, hook.message["to"]) for hook in gateway.to("/push")] == [(by_push, "token-1")]
    assert [(hook.key, hook.message["to"]) for hook in gateway.to("/sms")] == [(by_sms, "+39 1")]


async def test_an_unavailable_mail_server_affects_no_other_channel_and_loses_no_mail(
    deliveries: Deliveries, running: Running, mail: MailServer, gateway: Gateway
) -> None:
    mail.kill()
    deliveries.add_users(*range(1, 31))
    for user in range(1, 31):
        deliveries.request(user, Channel.EMAIL, Channel.PUSH, Channel.SMS, Channel.IN_APP)
    async with running(deliveries):
        await eventually(all_in_states(deliveries, PUBLISHED=90, PENDING=30), within=90)
        assert len(gateway.to("/push")) == len(gateway.to("/sms")) == 30
        counted = deliveries.rows(text("SELECT sum(attempts), count(last_error) FROM delivery_event"))
        assert counted[0][0] == 0
        assert counted[0][1] > 0  # it was attempted
        mail.start()
        await eventually(all_in_states(deliveries, PUBLISHED=120), within=90)
    assert sorted(got.to[0] for got in mail.mails) == sorted(f"user{user}@example.org" for user in range(1, 31))


async def test_a_mail_server_that_hangs_does_not_delay_push_messages(
    deliveries: Deliveries, running: Running, settings: DeliverySettings, gateway: Gateway
) -> None:
    deliveries.add_users(*range(1, 101))
    for user in range(1, 101):
        deliveries.request(user, Channel.EMAIL)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        hangs = replace(settings, mail=MailServerAt(host="127.0.0.1", port=silent.getsockname()[1], timeout=90))
        async with running(deliveries, hangs):
            first, _ = await asyncio.wait_for(asyncio.to_thread(silent.accept), 30)  # a mail is being sent
            for user in range(1, 101):
                deliveries.request(user, Channel.PUSH)
            await eventually(lambda: are_published(deliveries, 100), within=60)  # mails hang for longer
            first.close()
            silent.close()  # so that the relay can stop
    assert len(gateway.to("/push")) == 100


async def test_a_permanently_rejected_mail_is_dead_lettered_and_others_are_delivered(
    deliveries: Deliveries, running: Running, mail: MailServer
) -> None:
    mail.refuse(user1="550 5.1.1 no such user")
    deliveries.add_users(1, 2)
    [refused], [accepted] = deliveries.request(1, Channel.EMAIL), deliveries.request(2, Channel.EMAIL)
    async with running(deliveries):
        await eventually(all_in_states(deliveries, PUBLISHED=1, FAILED=1), within=90)
    assert (deliveries.states()[refused], deliveries.states()[accepted]) == ("FAILED", "PUBLISHED")
    assert "550 5.1.1 no such user" in str(deliveries.errors()[refused])
    assert deliveries.delivered() == {(2, "EMAIL")}


async def test_a_temporarily_rejected_mail_is_retried_then_dead_lettered(
    deliveries: Deliveries, running: Running, mail: MailServer
) -> None:
    mail.refuse(user1="450 mailbox full")
    deliveries.add_users(1, 2)
    [deferred], [accepted] = deliveries.request(1, Channel.EMAIL), deliveries.request(2, Channel.EMAIL)
    async with running(deliveries):
        await eventually(all_in_states(deliveries, PUBLISHED=1, FAILED=1), within=90)
    rows = deliveries.rows(text(f"SELECT attempts FROM delivery_event WHERE event_id = '{deferred}'"))
    assert (deliveries.states()[accepted], rows[0][0]) == ("PUBLISHED", 3)


async def test_a_retry_sends_the_same_idempotency_key(
    deliveries: Deliveries, running: Running, gateway: Gateway
) -> None:
    gateway.answer = lambda hook: 500 if len(gateway.received) == 1 else 202
    deliveries.add_users(1)
    [requested] = deliveries.request(1, Channel.PUSH)
    async with running(deliveries):
        await eventually(all_in_states(deliveries, PUBLISHED=1), within=90)
    assert [hook.key for hook in gateway.received] == [requested, requested]
    assert deliveries.delivered() == {(1, "PUSH")}


async def test_quiet_hours_delay_only_their_own_delivery(
    deliveries: Deliveries, running: Running, gateway: Gateway
) -> None:
    deliveries.add_users(1)
    deliveries.request(1, Channel.PUSH, deliver_after=datetime.now(UTC) + timedelta(hours=8))
    deliveries.request(1, Channel.SMS)
    async with running(deliveries):
        await eventually(all_in_states(deliveries, PUBLISHED=1, PENDING=1), within=90)
    assert [hook.path for hook in gateway.received] == ["/sms"]


async def test_a_delivery_to_an_unknown_user_is_dead_lettered(deliveries: Deliveries, running: Running) -> None:
    deliveries.request(404, *EVERY)
    async with running(deliveries):
        await eventually(all_in_states(deliveries, FAILED=4), within=90)
    assert all("there is no user 404" in str(error) for error in deliveries.errors().values())


async def test_a_delivery_in_the_log_is_not_sent_again(
    deliveries: Deliveries, running: Running, gateway: Gateway
) -> None:
    """A crash between writing the log and settling leaves this state."""
    deliveries.add_users(1)
    [requested] = deliveries.request(1, Channel.PUSH)
    with deliveries.engine.begin() as connection:
        connection.execute(
            text(
                "INSERT INTO notification_delivery (audience, notification_id, user_id, channel, event_id, attempt,"
                " delivered_at) SELECT 'CUSTOMER', id, 1, 'PUSH', :requested, 1, created_at FROM customer_notification"
            ),
            {"requested": requested},
        )
    async with running(deliveries):
        await eventually(all_in_states(deliveries, PUBLISHED=1), within=90)
    assert gateway.received == []
    assert deliveries.delivered() == {(1, "PUSH")}
