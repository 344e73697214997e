"""A release of pika with renamed internals: the driver falls back to pika's own methods."""

import logging
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pika
import pytest

from pillarbox.core.errors import NackedError, RejectedError
from pillarbox.core.transport import Outgoing
from pillarbox.testing.conformance.transports import outgoing
from pillarbox.testing.waiting import eventually
from pillarbox.transports.rabbitmq import Queue, RabbitMQTransport, driver
from tests.integration.rabbitmq.conftest import MakeTransport
from tests.integration.rabbitmq.consumer import take_all

Batch = Callable[..., list[Outgoing]]

_SEND = """
import asyncio, logging, sys, pika
from pillarbox.testing.conformance.transports import outgoing
from pillarbox.transports.rabbitmq import RabbitMQTransport

async def main(where, url, queue):
    assert pika.__file__.startswith(where), pika.__file__
    transport = RabbitMQTransport(url)
    sent = [outgoing(f"e{n}", RabbitMQTransport.to(routing_key=queue), body=b"x" * 1000) for n in range(300)]
    assert await transport.send(sent) == [None] * 300
    assert transport.pace.progress() is not None
    await transport.aclose()

logging.basicConfig(level=logging.WARNING, format="%(name)s %(message)s")
asyncio.run(main(*sys.argv[1:]))
"""


@pytest.fixture
def renamed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "_INTERNALS", (*driver._INTERNALS, "_renamed"))
    driver._warn_of_missing.cache_clear()


@pytest.mark.usefixtures("renamed")
async def test_every_kind_of_result_is_returned_and_the_fallback_is_logged_once(
    make: MakeTransport, url: str, queue: str, batch: Batch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "pillarbox.rabbitmq")
    first, second = make(queues=[Queue(name=queue, type="classic", max_length=500)]), make(declare=False)
    nowhere = RabbitMQTransport.to(exchange="amq.direct", routing_key=f"{queue}-unbound")
    sent = [*batch(300), outgoing("lost", nowhere), outgoing("x" * 256, nowhere)]
    *accepted, lost, too_long = await first.send(sent)
    assert accepted == [None] * 300
    assert isinstance(lost, RejectedError)
    assert "ShortStringTooLong" in str(too_long)

    async def full() -> bool:
        return any(isinstance(result, NackedError) for result in await second.send(batch(300, "more")))

    await eventually(full)
    assert [taken.properties.message_id for taken in take_all(url, queue)][:300] == [f"e{n}" for n in range(300)]
    [line] = [record.getMessage() for record in caplog.records if record.name == "pillarbox.rabbitmq"]
    assert line.startswith(
        f"pika {pika.__version__} has no _renamed: messages are published through pika's own methods"
    )


@pytest.mark.parametrize("name", ["_adapter_emit_data", "_read_frame", "_frame_buffer", "_transport"])
def test_a_pika_with_renamed_internals_still_sends(tmp_path: Path, url: str, queue: str, name: str) -> None:
    copy = shutil.copytree(Path(pika.__file__).parent, tmp_path / "pika", ignore=shutil.ignore_patterns("__pycache__"))
    for file in copy.rglob("*.py"):
        file.write_text(re.sub(rf"\b{name}\b", f"{name}_of_tomorrow", file.read_text()))
    ran = subprocess.run(
        [sys.executable, "-c", _SEND, str(tmp_path), url, queue],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    warned = f"has no {name}: messages are published through pika's own methods" in ran.stderr
    assert warned == (name in driver._INTERNALS)
    assert len(take_all(url, queue)) == 300
