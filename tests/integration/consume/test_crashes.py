"""Consumer processes that crash around their commit, drain, or crash by a message."""

import signal
from collections.abc import Callable
from pathlib import Path

from tests.integration.consume.broker import dead_letters, publish, ready
from tests.integration.consume.conftest import Effects
from tests.integration.consume.processes import ConsumerProcess
from tests.servers.waiting import wait_until

Start = Callable[[], ConsumerProcess]
BOUND = 90.0


def test_a_crash_between_commit_and_ack_has_one_effect(
    url: str, queue: str, start: Start, effects: Effects, tmp_path: Path
) -> None:
    publish(url, queue, "e1")
    (tmp_path / "after-commit").touch()
    first = start()
    assert first.wait() == -signal.SIGKILL
    assert effects() == ["e1"]
    second = start()
    wait_until(lambda: "skipping" in second.log_text(), bound=BOUND, what="the duplicate is skipped")
    second.terminate()
    assert second.wait() == 0
    assert "WARNING pillarbox.consumer.events: event already processed, skipping" in second.log_text()
    assert "event_id=e1" in second.log_text()
    assert effects() == ["e1"]
    assert ready(url, queue) == 0


def test_a_crash_before_the_commit_is_rolled_back_and_handled_again(
    url: str, queue: str, start: Start, effects: Effects, tmp_path: Path
) -> None:
    publish(url, queue, "e1")
    (tmp_path / "before-commit").touch()
    first = start()
    assert first.wait() == -signal.SIGKILL
    assert effects() == []
    second = start()
    wait_until(lambda: effects() == ["e1"], bound=BOUND, what="the event is handled again")
    second.terminate()
    assert second.wait() == 0
    assert ready(url, queue) == 0


def test_a_message_that_crashes_its_consumer_is_dead_lettered(
    url: str, queue: str, start: Start, effects: Effects
) -> None:
    publish(url, queue, "poison", *(f"e{n}" for n in range(5)))
    kills = 0
    while not _finds_out(process := start()):
        kills += 1
        assert process.wait() == -signal.SIGKILL
    wait_until(lambda: len(effects()) == 5, bound=BOUND, what="the other messages are handled")
    process.terminate()
    assert process.wait() == 0
    # Twice among others, five times alone; a crash while it is moved may leave it in two queues for a while.
    assert 7 <= kills <= 9
    assert effects() == [f"e{n}" for n in range(5)]
    [dead_letter] = dead_letters(url, queue)
    assert dead_letter.properties.message_id == "poison"
    assert "crashed or lost their connection" in str((dead_letter.properties.headers or {})["pillarbox-reason"])


def test_on_sigterm_the_consumer_finishes_messages_in_flight(
    url: str, queue: str, start: Start, effects: Effects
) -> None:
    publish(url, queue, "slow")
    process = start()
    wait_until((process.folder / "begun").exists, bound=BOUND, what="the event is in flight")
    process.terminate()
    wait_until(lambda: "draining" in process.log_text(), bound=BOUND, what="the stop request")
    (process.folder / "go-on").touch()
    assert process.wait() == 0
    assert effects() == ["slow"]
    assert ready(url, queue) == 0
    story = process.log_text()
    assert "INFO pillarbox.consumer: consumer started" in story
    assert "INFO pillarbox.consumer: drained and stopped" in story


def _finds_out(process: ConsumerProcess) -> bool:
    """Whether it dead-letters the message before it crashes."""
    expected = "dead-lettered event"
    wait_until(lambda: process.ended or expected in process.log_text(), bound=BOUND, what="a crash or a dead letter")
    return not process.ended
