"""Confirms are read from the bytes, everything else by pika: in the order of the stream, however it is cut."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pika import BasicProperties, frame, spec
from pika.adapters.asyncio_connection import AsyncioConnection
from pika.amqp_object import Method
from pika.exceptions import InvalidFrameError
from pika.frame import Heartbeat

from pillarbox.transports.rabbitmq.confirms import leading_confirms
from pillarbox.transports.rabbitmq.driver import RawChannel, Wire
from tests.unit.transports.rabbitmq.scripted import Broker, content_frames, method_frame, scripted

PUBLISHERS, CONSUMER = (1, 2), 3
CHANNELS = (*PUBLISHERS, CONSUMER)
Confirmed = tuple[str, int, int, bool, bool]


class Outcome(NamedTuple):
    """What a connection did with a stream."""

    log: list[Any]
    bytes_received: int
    frames_received: int
    heartbeats: int
    left: bytes
    """The beginning of a frame whose end is still to come."""
    written: bytes


class Listener:
    """Two channels that publish and one that consumes; what each receives, in order."""

    def __init__(self, broker: Broker, *, past_pika: bool) -> None:
        self.log: list[Any] = []
        self.past_pika = 0
        """Confirms that pika did not see."""
        self.broker = broker
        for number in CHANNELS:
            channel = broker.channel(number)
            channel.add_on_close_callback(self._closed)
            if number in PUBLISHERS:
                channel.add_on_return_callback(self._returned)
                channel.confirm_delivery(self._confirmed_by_pika)
                broker.say(number, spec.Confirm.SelectOk())
                if past_pika:
                    broker.connection.take_confirms(channel, self._on_confirm(number))
            else:
                channel.basic_consume("queue", self._delivered, consumer_tag="tag")
                broker.say(number, spec.Basic.ConsumeOk("tag"))
        broker.stream.written.clear()

    def outcome(self) -> Outcome:
        connection = self.broker.connection
        checker = connection._heartbeat_checker
        return Outcome(
            self.log,
            connection.bytes_received,
            connection.frames_received,
            checker._heartbeat_frames_received,
            connection._frame_buffer,
            bytes(self.broker.stream.written),
        )

    def _on_confirm(self, number: int) -> Callable[[int, bool, bool], None]:
        def confirmed(tag: int, multiple: bool, accepted: bool) -> None:
            self.past_pika += 1
            self.log.append(("confirmed", number, tag, multiple, accepted))

        return confirmed

    def _confirmed_by_pika(self, found: Any) -> None:
        method, accepted = found.method, isinstance(found.method, spec.Basic.Ack)
        self.log.append(("confirmed", found.channel_number, method.delivery_tag, method.multiple, accepted))

    def _returned(self, channel: RawChannel, method: spec.Basic.Return, properties: Any, body: bytes) -> None:
        self.log.append(("returned", channel.channel_number, method.routing_key, properties.message_id, body))

    def _delivered(self, channel: RawChannel, method: spec.Basic.Deliver, properties: Any, body: bytes) -> None:
        self.log.append(("delivered", channel.channel_number, method.delivery_tag, properties.message_id, body))

    def _closed(self, channel: RawChannel, reason: Any) -> None:
        self.log.append(("closed", channel.channel_number, reason.reply_code))


@contextmanager
def both() -> Iterator[tuple[Listener, Listener]]:
    """Our connection and pika's own."""
    with ExitStack() as stack:
        _, ours = stack.enter_context(scripted(Wire))
        _, pikas = stack.enter_context(scripted(AsyncioConnection))
        yield Listener(ours, past_pika=True), Listener(pikas, past_pika=False)


def ack(channel: int, tag: int, multiple: bool = False) -> bytes:
    return method_frame(channel, spec.Basic.Ack(tag, multiple))


def nack(channel: int, tag: int, multiple: bool = False, requeue: bool = False) -> bytes:
    return method_frame(channel, spec.Basic.Nack(tag, multiple, requeue))


def with_content(channel: int, method: Method, event_id: str, *bodies: bytes) -> list[bytes]:
    return [method_frame(channel, method), *content_frames(channel, BasicProperties(message_id=event_id), *bodies)]


def returned(channel: int, event_id: str, *bodies: bytes) -> list[bytes]:
    return with_content(channel, spec.Basic.Return(312, "NO_ROUTE", "exchange", f"key-{event_id}"), event_id, *bodies)


def delivered(tag: int, *bodies: bytes) -> list[bytes]:
    return with_content(CONSUMER, spec.Basic.Deliver("tag", tag, False, "exchange", "key"), f"e{tag}", *bodies)


def closed(channel: int) -> bytes:
    """Exactly as long as a confirm."""
    return method_frame(channel, spec.Channel.Close(404, "NO", 60, 40))


HEARTBEAT = frame.Heartbeat().marshal()
MANY: list[list[bytes]] = [
    [ack(1, 1)],
    [ack(2, 5, True)],
    returned(1, "a", b"body"),
    [ack(1, 2)],
    [nack(1, 3)],
    [HEARTBEAT],
    delivered(1, b"de", b"liv", b"ered"),
    [nack(2, 2**63, True, True)],
    # The frames of another channel may come between those of a return.
    [returned(2, "b", b"x" * 30)[0], ack(1, 4), *returned(2, "b", b"x" * 30)[1:], ack(2, 6)],
    [ack(CONSUMER, 1)],
    returned(1, "c"),
    [method_frame(0, spec.Connection.Blocked("memory")), method_frame(0, spec.Connection.Unblocked())],
    [closed(1)],
    [ack(1, 9)],
    [ack(2, 0, True)],
]

TAGS = st.integers(0, 2**64 - 1) | st.integers(0, 300)
BODIES = st.lists(st.binary(min_size=1, max_size=60) | st.just(ack(1, 1)), max_size=3)
UNITS = st.one_of(
    st.builds(
        lambda channel, tag, multiple: [ack(channel, tag, multiple)], st.sampled_from(CHANNELS), TAGS, st.booleans()
    ),
    st.builds(
        lambda channel, tag, multiple, requeue: [nack(channel, tag, multiple, requeue)],
        st.sampled_from(CHANNELS),
        TAGS,
        st.booleans(),
        st.booleans(),
    ),
    st.builds(lambda channel, bodies: returned(channel, "r", *bodies), st.sampled_from(PUBLISHERS), BODIES),
    st.builds(lambda tag, bodies: delivered(tag, *bodies), TAGS, BODIES),
    st.just([HEARTBEAT]),
    st.sampled_from(MANY),
)


def feed(listener: Listener, pieces: Sequence[bytes]) -> Outcome:
    for piece in pieces:
        listener.broker.send(piece)
    return listener.outcome()


def joined(units: Sequence[Sequence[bytes]]) -> bytes:
    return b"".join(b"".join(unit) for unit in units)


def cut(stream: bytes, places: Sequence[int]) -> list[bytes]:
    ends = [*sorted(set(places)), len(stream)]
    return [piece for start, end in zip([0, *ends], ends, strict=False) if (piece := stream[start:end])]


def test_the_stream_means_the_same_as_to_pika_and_confirms_go_past_it() -> None:
    stream = joined(MANY)
    with both() as (ours, pikas):
        assert feed(ours, [stream]) == feed(pikas, [stream])
        confirmed = [entry for entry in pikas.log if entry[0] == "confirmed" and entry[1] in PUBLISHERS]
        assert ours.past_pika == len(confirmed) == 8
        assert [entry[0] for entry in ours.log[:4]] == ["confirmed", "confirmed", "returned", "confirmed"]
        assert ("closed", 1, 404) in ours.log


def test_a_stream_cut_anywhere_gives_the_same_confirms() -> None:
    stream = joined(MANY)
    with both() as (_, pikas):
        expected = feed(pikas, [stream])
    for place in range(1, len(stream)):
        with scripted(Wire) as (_, broker):
            assert feed(Listener(broker, past_pika=True), [stream[:place], stream[place:]]) == expected


def test_read_byte_by_byte_the_state_after_each_is_that_of_pika() -> None:
    stream = joined(MANY)
    with both() as (ours, pikas):
        for place in range(len(stream)):
            piece = [stream[place : place + 1]]
            assert feed(ours, piece) == feed(pikas, piece)


@given(st.lists(UNITS, max_size=30), st.data())
def test_any_stream_cut_anywhere_means_the_same_as_to_pika(units: list[list[bytes]], data: st.DataObject) -> None:
    stream = joined(units)
    places = data.draw(st.lists(st.integers(1, max(len(stream), 1)), max_size=20))
    pieces = cut(stream, places)
    with both() as (ours, pikas):
        assert feed(ours, pieces) == feed(pikas, pieces)


def test_a_confirm_without_a_frame_end_is_rejected_as_by_pika() -> None:
    broken = ack(1, 1)[:-1] + b"\0"
    with both() as (ours, pikas):
        for listener in (ours, pikas):
            with pytest.raises(InvalidFrameError):
                feed(listener, [ack(1, 7), broken])
        assert ours.outcome() == pikas.outcome()


def test_any_other_frame_ends_the_search() -> None:
    other = ack(9, 3)
    found, size = leading_confirms(ack(1, 1) + nack(1, 2, True) + other + ack(1, 4), {1})
    assert found == [(1, 1, False, True), (1, 2, True, False)]
    assert size == len(ack(1, 1)) * 2


def test_a_number_that_another_channel_took_over_has_its_own_confirms() -> None:
    with scripted(Wire) as (wire, broker):
        first, second = Listener(broker, past_pika=True), []
        broker.send(closed(1))
        channel = broker.channel(1)
        broker.send(ack(1, 1))
        wire.take_confirms(channel, lambda *confirm: second.append(confirm))
        broker.send(ack(1, 2))
    assert first.past_pika == 0
    assert second == [(2, False, True)]


class TestHeartbeat:
    """pika calls these when a timer fires; a connection is dead if no byte was counted since the last time."""

    def test_a_connection_that_receives_nothing_but_confirms_is_alive(self) -> None:
        with scripted(Wire) as (_, broker):
            Listener(broker, past_pika=True)
            checker: Any = broker.connection._heartbeat_checker
            checker._update_counters()
            for tag in range(1, 4):
                broker.send(ack(1, tag))
                checker._check_heartbeat()
                assert not broker.stream.aborted

    def test_a_silent_connection_counts_as_lost(self) -> None:
        with scripted(Wire) as (_, broker):
            Listener(broker, past_pika=True)
            checker: Any = broker.connection._heartbeat_checker
            broker.send(ack(1, 1))
            checker._check_heartbeat()
            assert not broker.stream.aborted
            checker._check_heartbeat()
            assert broker.stream.aborted

    def test_half_a_confirm_does_not_count_as_a_heartbeat_as_with_pika(self) -> None:
        for kind in (Wire, AsyncioConnection):
            with scripted(kind) as (_, broker):
                Listener(broker, past_pika=kind is Wire)
                checker: Any = broker.connection._heartbeat_checker
                checker._update_counters()
                broker.send(ack(1, 1)[:-1])
                checker._check_heartbeat()
                assert broker.stream.aborted


def test_written_frames_count_as_sent_and_as_transmitted_once_they_left() -> None:
    with scripted(Wire) as (wire, broker):
        sent, transmitted = wire.bytes_sent, wire.transmitted
        data = [b"x" * 100_000, b"y" * 50_000]
        with wire.joined():
            wire.write(data)
        assert broker.stream.written == b"".join(data)
        assert wire.bytes_sent == sent + 150_000
        assert wire.transmitted == transmitted + 150_000
        broker.stream.held_back = 60_000
        assert wire.transmitted == transmitted + 90_000


def test_a_heartbeat_is_not_progress() -> None:
    with scripted(Wire) as (wire, broker):
        with wire.joined():
            wire.write([b"x" * 100])
        transmitted = wire.transmitted
        checker: Any = broker.connection._heartbeat_checker
        checker._send_heartbeat_frame()
        assert broker.stream.written.endswith(Heartbeat().marshal())
        assert wire.transmitted == transmitted
        broker.stream.held_back = len(Heartbeat().marshal())
        assert wire.transmitted == transmitted
        broker.stream.held_back += 40
        assert wire.transmitted == transmitted - 40
