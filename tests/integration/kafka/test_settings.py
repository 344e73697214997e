"""A settings file is enough: the relay sends to Kafka, and the doctor and `open_source` know the cluster."""

import sqlite3
from contextlib import aclosing, closing
from pathlib import Path

from pillarbox import Event, Outbox, Relay, open_source
from pillarbox.stores.sqlite import SqliteStore
from pillarbox.testing.conformance.sources.receive import taken_ids
from tests.integration.kafka.topics import ids, new_topic, put, read_all
from tests.servers.kafka import GROUP_SETTINGS, KafkaServer


async def test_a_relay_from_settings_sends_to_the_topic_of_its_destination(
    server: KafkaServer, topic: str, tmp_path: Path
) -> None:
    database, file = tmp_path / "shop.db", tmp_path / "pillarbox.toml"
    file.write_text(f"""
        [store]
        url = "sqlite:///{database}"

        [transports.kafka]
        url = "{server.url()}"
        window = 50
        declare = false
        client = {{ "compression.type" = "gzip" }}

        [destinations.orders]
        topic = "{topic}"
        ordering = "pipelined"

        [[routes]]
        to = ["orders"]
    """)
    async with aclosing(SqliteStore(database)) as store:
        await store.schema.apply()
    names = [f"e{n}" for n in range(100)]
    with closing(sqlite3.connect(database, isolation_level="IMMEDIATE")) as connection, connection:
        Outbox().record(connection, *(Event("order.placed", {}, event_id=one, key="hot") for one in names))
    await Relay.from_settings(file).run_until_empty()
    assert ids(read_all(server.bootstrap, topic)) == names


async def test_a_source_is_opened_by_its_url(server: KafkaServer, topic: str) -> None:
    group = new_topic()
    for name in (f"{topic}.{group}.retry", f"{topic}.{group}.dlq"):
        server.create_topic(name)
    source = open_source(server.url(), topic, group=group, prefetch=2, client=GROUP_SETTINGS)
    put(server.bootstrap, topic, [(b"{}", [("eventId", b"a")])])
    assert await taken_ids(source, 1) == ["a"]
    await source.aclose()
