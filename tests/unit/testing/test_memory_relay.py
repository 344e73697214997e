"""The memory relay and the virtual clock: handlers run on what was recorded, without waiting."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from pillarbox import (
    ConfigurationError,
    Event,
    FixedDelay,
    HandlerContext,
    Handlers,
    NoRetry,
    Outbox,
    ReceivedEvent,
    Route,
    UnavailableError,
)
from pillarbox.testing import CapturedOutbox, MemoryRelay, VirtualClock
from pillarbox.transports.memory import MemoryTransport


@pytest.fixture
def captured() -> Iterator[CapturedOutbox]:
    with CapturedOutbox() as captured:
        yield captured


def test_handlers_receive_what_was_recorded_in_order(captured: CapturedOutbox) -> None:
    handlers, seen = Handlers(), list[int]()

    @handlers.on("order.placed", name="mailer")
    def send_receipt(event: ReceivedEvent, context: HandlerContext) -> None:
        seen.append(event.payload["id"])

    captured.record(*(Event("order.placed", {"id": number}, key="one") for number in range(5)))
    run = MemoryRelay(captured, handlers).run()
    run.assert_all_delivered()
    assert seen == [0, 1, 2, 3, 4]
    assert [(attempt.destination, attempt.number) for attempt in run.delivered] == [("mailer", 1)] * 5
    assert MemoryRelay(captured, handlers).run().delivered == ()


def test_a_rolled_back_event_is_not_delivered(captured: CapturedOutbox) -> None:
    handlers = Handlers()
    with pytest.raises(ZeroDivisionError), captured.transaction() as connection:
        Outbox().record(connection, Event("order.placed", {"id": 1 // 0}))
    assert MemoryRelay(captured, handlers).run_until_idle().pending == 0


def test_a_retry_falls_due_when_the_clock_advances(captured: CapturedOutbox) -> None:
    handlers = Handlers()

    @handlers.on("order.placed", name="mailer")
    async def fail_twice(event: ReceivedEvent, context: HandlerContext) -> None:
        if context.attempt < 3:
            raise ValueError("mail server down")

    captured.record(Event("order.placed", {}))
    relay = MemoryRelay(captured, handlers, retry=FixedDelay(delay="1h"))
    first = relay.run()
    assert (first.pending, [failure.number for failure in first.failures]) == (1, [1])
    assert "ValueError: mail server down" in first.failures[0].error
    captured.clock.advance("59m")
    assert relay.run().failures == ()
    captured.clock.advance("2m")
    assert [failure.number for failure in relay.run().failures] == [2]
    start = captured.clock.now()
    relay.run_until_idle().assert_all_delivered()
    assert captured.clock.now() - start == timedelta(hours=1)


def test_a_delayed_event_is_delivered_by_running_until_idle(captured: CapturedOutbox) -> None:
    handlers, seen = Handlers(), list[datetime]()

    @handlers.on("*", name="all")
    def note(event: ReceivedEvent, context: HandlerContext) -> None:
        seen.append(captured.clock.now())

    start = captured.clock.now()
    captured.record(Event("reminder", {}, available_at=start + timedelta(days=7)), Event("order.placed", {}))
    relay = MemoryRelay(captured, handlers)
    assert relay.run_until_idle(within="6 days").pending == 1
    relay.run_until_idle().assert_all_delivered()
    assert seen == [start, start + timedelta(days=7)]


def test_a_handler_that_records_the_next_event_runs_on_it(captured: CapturedOutbox) -> None:
    handlers, outbox = Handlers(), Outbox()

    @handlers.on("order.placed", name="billing")
    def bill(event: ReceivedEvent, context: HandlerContext) -> None:
        with captured.transaction() as connection:
            outbox.record(connection, Event("invoice.created", {"order": event.payload["id"]}).caused_by(event))

    @handlers.on("invoice.created", name="mailer")
    def mail(event: ReceivedEvent, context: HandlerContext) -> None: ...

    [event_id] = captured.record(Event("order.placed", {"id": 42}))
    run = MemoryRelay(captured, handlers).run()
    run.assert_all_delivered()
    assert [attempt.destination for attempt in run.delivered] == ["billing", "mailer"]
    captured.assert_recorded("invoice.created", payload__order=42, causation_id=event_id)


def test_dead_letters_are_reported_with_what_the_handler_raised(captured: CapturedOutbox) -> None:
    handlers = Handlers()

    @handlers.on("order.placed", name="mailer")
    def fail(event: ReceivedEvent, context: HandlerContext) -> None:
        raise ValueError("no address")

    captured.record(Event("order.placed", {}))
    run = MemoryRelay(captured, handlers, retry=NoRetry()).run_until_idle()
    with pytest.raises(AssertionError, match=r"(?s)1 dead-lettered.*order\.placed to mailer, .*ValueError: no address"):
        run.assert_all_delivered()


def test_an_event_without_a_handler_is_not_silently_lost(captured: CapturedOutbox) -> None:
    captured.record(Event("order.placed", {}))
    with pytest.raises(
        AssertionError, match=r"order\.placed to no destination, attempt 1: no route for 'order\.placed'"
    ):
        MemoryRelay(captured, Handlers()).run().assert_all_delivered()


def test_an_unavailable_destination_leaves_its_events_pending(captured: CapturedOutbox) -> None:
    handlers, down = Handlers(), [True]

    @handlers.on("order.placed", name="partner")
    async def call(event: ReceivedEvent, context: HandlerContext) -> None:
        if down:
            raise UnavailableError("partner is down")

    captured.record(Event("order.placed", {}))
    relay = MemoryRelay(captured, handlers)
    assert relay.run_until_idle().pending == 1
    down.clear()
    captured.clock.advance("1h")
    relay.run_until_idle().assert_all_delivered()


def test_any_transport_and_routes_can_be_tested(captured: CapturedOutbox) -> None:
    broker = MemoryTransport()
    captured.record(Event("order.placed", {"id": 1}))
    relay = MemoryRelay(
        captured,
        {"broker": broker},
        destinations={"billing": broker.to("billing")},
        routes=[Route(event_type="order.*", to=["billing"])],
    )
    relay.run().assert_all_delivered()
    assert [sent.message.event_type for sent in broker.delivered("billing")] == ["order.placed"]


def test_a_handler_that_records_without_end_fails_the_test(
    captured: CapturedOutbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pillarbox.testing.relay.MAX_ROUNDS", 20)
    handlers = Handlers()

    @handlers.on("tick", name="ticker")
    def tick(event: ReceivedEvent, context: HandlerContext) -> None:
        captured.record(Event("tick", {}, available_at=captured.clock.now() + timedelta(seconds=1)))

    captured.record(Event("tick", {}))
    with pytest.raises(AssertionError, match="not idle after 20 rounds"):
        MemoryRelay(captured, handlers).run_until_idle()
    assert MemoryRelay(captured, handlers).run_until_idle(within="5s").pending == 1


async def test_a_coroutine_awaits_it_and_the_blocking_call_says_so(captured: CapturedOutbox) -> None:
    handlers, seen = Handlers(), list[str]()

    @handlers.on("order.placed", name="mailer")
    async def note(event: ReceivedEvent, context: HandlerContext) -> None:
        seen.append(event.event_type)

    relay = MemoryRelay(captured, handlers)
    captured.record(Event("order.placed", {}))
    with pytest.raises(ConfigurationError, match=r"call await arun_until_idle\(…\)"):
        relay.run_until_idle()
    (await relay.arun_until_idle()).assert_all_delivered()
    assert seen == ["order.placed"]


def test_the_clock_stands_still_and_never_goes_back() -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    clock = VirtualClock(start)
    before = clock.monotonic()
    assert clock.now() == start
    clock.advance("1h")
    clock.advance(timedelta(minutes=1))
    clock.advance_to(start)
    assert clock.now() == start + timedelta(minutes=61)
    assert clock.monotonic() - before >= 61 * 60
    with pytest.raises(ConfigurationError, match="by: -1 must be"):
        clock.advance(-1)
    with pytest.raises(ConfigurationError, match="no time zone"):
        VirtualClock(datetime(2026, 1, 1))
