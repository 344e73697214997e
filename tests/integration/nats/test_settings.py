"""NATS from pillarbox.toml: the transport, its addresses, the doctor, and a temporary stream for the benchmark."""

import asyncio
import json
from contextlib import aclosing
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from pillarbox.ops.settings import Settings
from pillarbox.ops.wiring import open_transport_diagnosis, open_transports
from pillarbox.testing.conformance.transports import outgoing
from pillarbox.transports.nats import NatsTransport
from pillarbox.transports.nats.plugin import NatsPlugin
from tests.integration.cli.running import pillarbox
from tests.integration.doctor.asking import ask
from tests.integration.nats.streams import jetstream, stored
from tests.integration.rabbitmq.proxy import Proxy
from tests.servers.nats import NatsServer


@pytest.fixture
def settings(tmp_path: Path, url: str, name: str) -> Settings:
    file = tmp_path / "pillarbox.toml"
    file.write_text(
        f"""
        [transports.nats]
        url = "{url}"
        window = 10

        [[transports.nats.streams]]
        name = "{name}"
        subjects = ["{name}.>"]
        duplicate_window = "5s"

        [destinations.orders]
        subject = "{name}.{{event_type}}"
        expected_stream = "{name}"
        ordering = "pipelined"
        """
    )
    return Settings.load(file, {}, {})


async def test_the_settings_make_a_transport_with_its_streams(settings: Settings, name: str, url: str) -> None:
    [transport] = open_transports(settings).values()
    assert isinstance(transport, NatsTransport)
    async with aclosing(transport):
        assert (transport.pace.batch_size, transport.pace.concurrency) == (10, 1)
        address = NatsTransport.to(subject=f"{name}.{{event_type}}", expected_stream=name)
        batch = [outgoing(f"e{n}", address) for n in range(25)]
        assert await transport.send(batch) == [None] * 25
    assert {one.subject for one in await stored(url, name)} == {f"{name}.thing.happened"}


async def test_the_doctor_compares_the_duplicate_window_with_the_relay(settings: Settings) -> None:
    [transport] = open_transports(settings).values()
    async with aclosing(transport):
        await transport.ping()
    checks = open_transport_diagnosis(settings, "nats")
    assert checks is not None
    async with aclosing(checks):
        found = await ask(checks.checks(), "transport.duplicates")
        assert (found.result, "5 s" in found.message) == ("warn", True)
        # Lease, send timeout and the longest delay between two probes.
        assert 'duplicate_window = "27s"' in found.fix


async def test_a_scratch_stream_is_dropped_over_its_own_transport(
    proxy: Proxy, nats_server: NatsServer, name: str, url: str
) -> None:
    options = {"window": 10, "send_timeout": "2s", "connect_timeout": "2s"}
    scratch = NatsPlugin().scratch(f"nats://127.0.0.1:{proxy.port}", options, name)
    async with aclosing(scratch.transport):
        assert await scratch.transport.send([outgoing("a", scratch.address)]) == [None]
        await proxy.cut()
        await scratch.drop()
        await proxy.heal()
        await scratch.drop()
        await scratch.drop()
    async with jetstream(url) as server:
        assert name not in [info.config.name for info in await server.streams_info()]


async def test_the_command_line_measures_and_examines_nats_and_removes_what_it_creates(
    url: str, tmp_path: Path
) -> None:
    variables = {"PILLARBOX_STORE": f"sqlite:///{tmp_path}/shop.db", "PILLARBOX_TRANSPORT": url}

    def run(*arguments: str) -> CompletedProcess[str]:
        return pillarbox(*arguments, cwd=tmp_path, **variables)

    assert (await asyncio.to_thread(run, "schema", "apply")).returncode == 0
    found = json.loads((await asyncio.to_thread(run, "doctor", "--json")).stdout)
    results = {one["check"]: one["result"] for one in found["findings"]}
    assert (results["transport.reachable"], results["transport.jetstream"]) == ("pass", "pass")
    measured = await asyncio.to_thread(run, "bench", "--seconds", "1", "--json")
    assert measured.returncode == 0, measured.stderr
    async with jetstream(url) as server:
        assert [info for info in await server.streams_info() if str(info.config.name).startswith("bench")] == []
