"""Combinations of settings: invalid ones are rejected, questionable ones noted."""

import pytest

from tests.unit.ops.settings.conftest import Write
from tests.unit.ops.settings.loading import load, origins, problems

RABBIT = "[transports.rabbit]\nurl = 'amqp://mq/'\n"
NATS = "[transports.nats]\nurl = 'nats://n1,n2'\n"
CELERY = "[transports.tasks]\nurl = 'celery://mq/'\n"
STDOUT = "[transports.out]\nurl = 'stdout://'\n"
DESTINATION = "[destinations.d]\n"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "[relay]\nsend_timeout = '20s'",
            "relay.lease is 15s: it must be at least 23s, which is relay.send_timeout in pillarbox.toml (20s)",
        ),
        (
            "[relay]\nheartbeat_interval = '6s'",
            "relay.lease is 15s: it must be at least 3 × relay.heartbeat_interval in pillarbox.toml (6s)",
        ),
        (
            "[relay]\nstall_limit = '500ms'",
            "relay.stall_limit in pillarbox.toml is 500ms: it must be at least 2 × relay.heartbeat_interval (1s)",
        ),
        (
            "[relay]\npoll_interval = '0s'",
            "relay.poll_interval in pillarbox.toml is '0s': write a duration above zero",
        ),
        (
            "[relay.retry]\npolicy = 'fixed'\nmax_delay = '1h'",
            "is only for exponential, and this is fixed: remove it",
        ),
        ("[relay.retry]\npolicy = 'none'\nbase = '1s'", "is only for exponential, and this is none"),
        ("[relay.retry]\npolicy = 'none'\nmax_attempts = 5", "is only for exponential and fixed, and this is none"),
        ("[relay]\nat_most_once = true", 'needs a ledger, and store.ledger is "history": set store.ledger = true'),
        (
            "[relay.breaker]\nfirst_delay = '5s'",
            "relay.breaker.first_delay in pillarbox.toml is 5s: it must not be longer than",
        ),
        ("[transports.x]\nwindow = 5", "transports.x has neither url nor import"),
        ("[transports.x]\nurl = 'stdout://'\nimport = 'a:b'", "are both set: a transport has one of them"),
        (
            STDOUT + "heartbeat = '5s'",
            "transports.out.heartbeat in pillarbox.toml is only for rabbitmq, and this is stdout",
        ),
        (
            NATS + "[[transports.nats.streams]]\nname = 'a.b'\nsubjects = ['x']",
            "transports.nats.streams[0] in pillarbox.toml: a stream 'a.b': NATS accepts no space, dot",
        ),
        (NATS + DESTINATION + "subject = 'a.*'", "the subject 'a.*': a message cannot be sent to a wildcard"),
        (RABBIT + DESTINATION + "subject = 'a'", "is only for nats, and this is rabbitmq"),
        (
            STDOUT + "[[transports.out.queues]]\nname = 'q'",
            "transports.out has queues, which are only for rabbitmq, and this is stdout",
        ),
        (STDOUT + DESTINATION + "exchange = 'x'", "is only for rabbitmq, and this is stdout with payload"),
        (RABBIT + DESTINATION + "numeric_id = true", "is only for envelope, and this is rabbitmq with payload"),
        (RABBIT + DESTINATION + "source = '/a'\nbody = 'envelope'", "is only for cloudevents"),
        (RABBIT + DESTINATION + "transport = 'rabit'", "is 'rabit', which is not a transport; did you mean 'rabbit'?"),
        (
            RABBIT + STDOUT + DESTINATION,
            "destinations.d.transport is missing: name one of the transports",
        ),
        (RABBIT + DESTINATION + "[[routes]]\nto = ['e']", "routes[0].to in pillarbox.toml names 'e', which is not a"),
        (RABBIT + "[[routes]]\nto = ['e']", "which is not a destination; there are none"),
        (
            RABBIT + DESTINATION + "[[routes]]\nto = ['d', 'd']",
            "routes[0] in pillarbox.toml: the route * → d + d names a destination twice",
        ),
        (
            RABBIT + "[[transports.rabbit.queues]]\nname = 'q'\noverflow = 'reject-publish-dlx'",
            "transports.rabbit.queues[0] in pillarbox.toml: queue 'q': quorum queues support",
        ),
        (
            RABBIT + "[destinations.d]\nrouting_key = '{colour}'",
            "destinations.d in pillarbox.toml: the routing key '{colour}' asks for",
        ),
        (
            RABBIT + "[[transports.rabbit.exchanges]]\nname = 'x'\ntype = 'tropic'",
            "transports.rabbit.exchanges[0] in pillarbox.toml: exchange 'x': type is",
        ),
        (
            CELERY + "[transports.tasks.options]\nqueu = 'x'",
            "transports.tasks.options.queu is not an option of celery; did you mean 'queue'?",
        ),
        (
            CELERY + "[transports.tasks.options]\nqueue_type = 'stream'",
            "transports.tasks.options.queue_type is 'stream': write",
        ),
        (
            CELERY + DESTINATION + "[destinations.d.options]\nrouting = 'x'",
            "destinations.d.options.routing is not an option of celery; there are task, queue",
        ),
        (
            CELERY + DESTINATION + "[destinations.d.options]\ntask = 5",
            "destinations.d.options.task is 5: write text in quotes",
        ),
    ],
)
def test_invalid_combinations_are_rejected(write: Write, text: str, problem: str) -> None:
    [found] = problems(write(text))
    assert problem in found


@pytest.mark.parametrize(
    ("text", "note"),
    [
        (
            "[relay.retention]\nhistory = '1h'",
            "relay.retention.history in pillarbox.toml is 1h, but an event is retried for up to 2.4 h",
        ),
        ("[relay]\nadaptive = false", 'set relay.wakeup = "none" for a fixed delay'),
        ("[relay]\ndrain_timeout = '5s'", "is 5s, shorter than relay.send_timeout (10s)"),
        ("[store]\nschema = 'shop'", "store.schema in pillarbox.toml has no effect on sqlite://"),
        (
            RABBIT + "[[transports.rabbit.queues]]\nname = 'q'\nmax_length = 5\noverflow = 'drop-head'",
            "transports.rabbit: the queue 'q' discards messages that were confirmed",
        ),
        (
            NATS + "[[transports.nats.streams]]\nname = 's'\nsubjects = ['x']\nmax_msgs = 5\ndiscard = 'old'",
            "transports.nats: the stream 's' discards messages that were confirmed",
        ),
    ],
)
def test_questionable_combinations_are_noted(write: Write, text: str, note: str) -> None:
    [found] = load(write(text)).notes
    assert note in found


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[store]\nhistory = false\n[relay.retention]\nhistory = '1h'",
        "[relay.retention]\nhistory = '3h'",
        "[relay.retention]\nhistory = '1h'\n[relay.retry]\npolicy = 'none'",
        "[relay.retention]\nhistory = '1h'\n[relay.retry]\nmax_attempts = 'unlimited'",
        "[relay]\nadaptive = false\nwakeup = 'none'",
        RABBIT + "[[transports.rabbit.queues]]\nname = 'q'\nmax_length = 5",
        NATS + "[[transports.nats.streams]]\nname = 's'\nsubjects = ['x']\nmax_msgs = 5",
        NATS + DESTINATION + "ordering = 'pipelined'",
        CELERY
        + "[transports.tasks.options]\nqueue = 'x'\nsend_timeout = '5s'\nwindow = 5\n"
        + DESTINATION
        + "[destinations.d.options]\ntask = 'shop.tasks.bill'\nqueue = 'q'",
    ],
)
def test_valid_combinations_have_no_note(write: Write, text: str) -> None:
    assert load(write(text)).notes == ()


def test_defaults_of_another_kind_do_not_apply(write: Write) -> None:
    shown = origins(load(write(STDOUT + DESTINATION)))
    assert [name for name in shown if name.startswith(("transports", "destinations"))] == [
        "transports.out.url",
        "destinations.d.body",
        "destinations.d.ordering",
    ]
