"""Scenes whose relays end with the test, and a database of the test's own on each engine."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.extremes.clocks import FakeClock
from tests.extremes.engines import ENGINES, Sending, opened_store, opened_target
from tests.extremes.engines import STORES as ALL_STORES
from tests.extremes.linked import CONFIRMS, SERVERS, STORES, WEBHOOK, Linked, port_of, received
from tests.extremes.links import FaultyProxy, Loss
from tests.extremes.receiving import WebhookReceiver
from tests.extremes.scene import Scene
from tests.faults.conftest import fork_server as fork_server
from tests.faults.conftest import make_stage as make_stage
from tests.servers.availability import available

MakeScene = Callable[..., Scene]
PARTITIONS = 4


@pytest.fixture
def make_scene(tmp_path: Path) -> Iterator[MakeScene]:
    """Makes scenes, and ends their relays at the end of the test."""
    made: list[Scene] = []

    def make(*, store: str, transport: str = "", keys: int = 20, **settings: str) -> Scene:
        ways = {"TRANSPORT": transport} if transport else {}
        event_type = f"extremes-{uuid.uuid4().hex[:12]}"
        made.append(Scene(tmp_path, store=store, event_type=event_type, settings=ways | settings, keys=keys))
        return made[-1]

    yield make
    for scene in made:
        scene.close()


@pytest.fixture
def clock() -> Iterator[FakeClock]:
    with closing(available(FakeClock)) as clock:
        yield clock


@pytest.fixture
def webhook_server() -> Iterator[WebhookReceiver]:
    with closing(WebhookReceiver()) as receiver:
        yield receiver


@pytest.fixture(params=ENGINES)
def sending(request: pytest.FixtureRequest, make_scene: MakeScene, tmp_path: Path) -> Iterator[Sending]:
    """A scene on each store, with RabbitMQ, and on each transport, with PostgreSQL."""
    engine = str(request.param)
    store, kind = (engine, "rabbitmq") if engine in ALL_STORES else ("postgres", engine)
    with (
        opened_store(request, store) as (url, through, store_link),
        opened_target(request, kind, tmp_path) as (to, link),
    ):
        scene = make_scene(store=url, **({"STORE": through} if engine in ALL_STORES else {}), **to.settings)
        to.create(scene.event_type)
        yield Sending(engine=engine, scene=scene, target=to, link=store_link if engine in ALL_STORES else link)
        scene.close()


@pytest.fixture
def one_place(sending: Sending, tmp_path: Path) -> str:
    """A settings file with which events of every type go to the same queue, topic, stream, URL or handler."""
    file = tmp_path / "one-place.toml"
    file.write_text(sending.target.one_place(sending.scene.event_type))
    return str(file)


@pytest.fixture(params=SERVERS)
def linked(request: pytest.FixtureRequest, make_scene: MakeScene) -> Iterator[Linked]:
    """A relay's link to each broker and to each database; writers and receivers do not use it."""
    # Without its losses, that of Kafka would not put its address in the place of the broker's.
    with linked_to(request, make_scene, CONFIRMS["kafka"]() if request.param == "kafka" else None) as linked:
        yield linked


@pytest.fixture(params=CONFIRMS)
def lossy(request: pytest.FixtureRequest, make_scene: MakeScene) -> Iterator[Linked]:
    """A relay's link to each broker, which can lose confirms."""
    with linked_to(request, make_scene, CONFIRMS[request.param]()) as linked:
        yield linked


@contextmanager
def linked_to(request: pytest.FixtureRequest, make_scene: MakeScene, loss: Loss | None) -> Iterator[Linked]:
    name = request.param
    is_store = name in STORES
    broker = request.getfixturevalue(f"{'rabbitmq' if is_store else name}_server")
    store = request.getfixturevalue(f"{name if is_store else 'postgres'}_url")
    straight = store if is_store else broker.url()
    with closing(FaultyProxy(port_of(straight), loss)) as link:
        linked_url = straight.replace(f":{port_of(straight)}", f":{link.port}")
        ways = {"STORE": linked_url, "TRANSPORT": broker.url()} if is_store else {"TRANSPORT": linked_url}
        if name == "webhook":
            (request.getfixturevalue("tmp_path") / "pillarbox.toml").write_text(WEBHOOK.format(url=linked_url))
            ways = {}
        scene = make_scene(store=store, **ways)
        if name == "kafka":
            if not broker.is_mock:
                pytest.skip("not supported: the brokers at KAFKA_URL may name themselves otherwise")
            broker.create_topic(scene.event_type, PARTITIONS)
        yield Linked(scene, link, lambda: received(broker, scene.event_type), loss)
        scene.close()


@pytest.fixture
def sqlite_url(sqlite_template: Path, tmp_path: Path) -> str:
    """A file of the test's own, tables in place."""
    return f"sqlite:///{shutil.copy(sqlite_template, tmp_path / 'outbox.db')}"


@pytest.fixture(params=["postgres", "mariadb", "sqlite"])
def any_store(request: pytest.FixtureRequest) -> str:
    """A database of the test's own on each engine."""
    return str(request.getfixturevalue(f"{request.param}_url"))
