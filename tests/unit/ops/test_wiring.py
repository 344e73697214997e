"""Creates stores, outboxes and routes from settings; errors name the location of the setting."""

from pathlib import Path

import pytest

from pillarbox import Event
from pillarbox.core.errors import ConfigurationError, RecordError, SettingsError
from pillarbox.core.transport import Address
from pillarbox.ops import wiring
from pillarbox.ops.settings import Settings
from pillarbox.stores.memory import MemoryStore
from pillarbox.stores.postgres import PostgresStore
from pillarbox.stores.sqlite import SqliteStore
from pillarbox.transports.memory import MemoryAddress, MemoryTransport
from pillarbox.transports.rabbitmq import RabbitMQAddress
from pillarbox.transports.webhook import WebhookAddress

RABBIT = "[transports.rabbit]\nurl = 'amqp://mq/'\n"
MEMORY = "[transports.here]\nurl = 'memory://'\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def settings_of(text: str) -> Settings:
    file = Path("pillarbox.toml")
    file.write_text(text, encoding="utf-8")
    return Settings.load(file, {})


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("postgresql://db/shop", PostgresStore),
        ("postgres://db/shop", PostgresStore),
        ("sqlite:///shop.db", SqliteStore),
        ("memory://", MemoryStore),
    ],
)
def test_the_url_selects_the_store(url: str, kind: type) -> None:
    assert isinstance(wiring.open_store(Settings.load(None, {"PILLARBOX_STORE": url}).store), kind)


@pytest.mark.parametrize("url", ["postgresql://db/shop", "sqlite:///shop.db"])
def test_tables_have_the_prefix_and_limits_of_the_settings(url: str) -> None:
    text = f"[store]\nurl = '{url}'\nprefix = 'mine_'\n[record]\nmax_payload = '2 MiB'"
    sql = wiring.open_store(settings_of(text).store).schema.sql(aliases=False)
    assert '"mine_message"' in sql
    assert str(2 * 1024**2) in sql


def test_postgresql_has_the_schema_of_the_settings() -> None:
    text = "[store]\nurl = 'postgresql://db/shop'\nschema = 'sales'"
    assert '"sales"."outbox_message"' in wiring.open_store(settings_of(text).store).schema.sql(aliases=False)


def test_an_outbox_enforces_the_settings() -> None:
    outbox, store = wiring.make_outbox(settings_of("[record]\nmax_payload = 10")), MemoryStore()
    with store.transaction() as transaction, pytest.raises(RecordError, match="payload"):
        outbox.record(transaction, Event("order.placed", {"id": "much too long"}))


def test_an_outbox_ignores_duplicates_if_configured() -> None:
    outbox, store = wiring.make_outbox(settings_of("[record]\nduplicate = 'ignore'")), MemoryStore()
    with store.transaction() as transaction:
        outbox.record(transaction, Event("order.placed", {}, event_id="e1"), Event("order.placed", {}, event_id="e1"))
    assert [stored.message.event_id for stored in store._tables.waiting.values()] == ["e1"]


async def test_events_take_the_routes_of_the_settings() -> None:
    text = MEMORY + "[destinations.orders]\nbody = 'envelope'\nconstants = { from = 'shop' }\n"
    text += (
        "[destinations.rest]\n[[routes]]\nevent_type = 'order.*'\nto = ['orders', 'rest']\n[[routes]]\nto = ['rest']"
    )
    settings, store, transport = settings_of(text), MemoryStore(), MemoryTransport()
    with store.transaction() as transaction:
        wiring.make_outbox(settings).record(transaction, Event("order.placed", {"id": 1}), Event("other", {"id": 2}))
    await wiring.make_relay(settings, store=store, transports={"here": transport}).run_until_empty()
    assert [b'"from":"shop"' in one.body for one in transport.delivered("orders")] == [True]
    assert sorted(one.body for one in transport.delivered("rest")) == [b'{"id":1}', b'{"id":2}']


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            RABBIT + "[destinations.d]\nbody = 'envelope'\nfields = ['colour']",
            "destinations.d in pillarbox.toml: envelope: 'colour' is not a field",
        ),
        ("[transports.h]\nimport = 'nowhere:x'", "transports.h in pillarbox.toml: there is no module 'nowhere'"),
        ("", "PILLARBOX_TRANSPORT is not set"),
    ],
)
def test_an_error_names_the_location_of_the_setting(text: str, problem: str) -> None:
    settings = settings_of(text)
    with pytest.raises(ConfigurationError) as raised:
        wiring.make_relay(settings, store=MemoryStore(), transports=wiring.open_transports(settings))
    assert problem in str(raised.value)


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("amqp://localhost", RabbitMQAddress(transport="broker", routing_key="orders.out")),
        ("memory://", MemoryAddress(transport="broker", name="orders.out")),
        ("https://partner.example/hooks", WebhookAddress(transport="broker", url="/orders.out")),
    ],
)
def test_a_target_is_an_address_on_any_broker(url: str, address: Address) -> None:
    text = f'[transports.broker]\nurl = "{url}"\n[destinations.orders]\ntarget = "orders.out"\n'
    settings = settings_of(text)
    relay = wiring.make_relay(settings, store=MemoryStore(), transports=wiring.open_transports(settings))
    [endpoint] = relay._context.routing.endpoints()
    assert endpoint.destination.address == address


def test_a_transport_without_queues_has_no_targets() -> None:
    settings = settings_of('[transports.out]\nurl = "stdout://"\n[destinations.orders]\ntarget = "x"\n')
    with pytest.raises(ConfigurationError, match="stdout has no queues"):
        wiring.make_relay(settings, store=MemoryStore(), transports=wiring.open_transports(settings))


def test_a_target_beside_an_address_is_rejected() -> None:
    text = '[transports.broker]\nurl = "amqp://localhost"\n[destinations.orders]\ntarget = "x"\nexchange = "y"\n'
    with pytest.raises(SettingsError, match=r"orders\.exchange .* and .*orders\.target .* are both set: remove one"):
        settings_of(text)
