"""Settings from a file, and errors that name their location."""

from pathlib import Path

import pytest

from pillarbox.core.errors import ConfigurationError
from pillarbox.ops.settings.sources import find_file
from pillarbox.relay.config import RetentionConfig
from pillarbox.retry_policies import FixedDelay, NoRetry
from tests.unit.ops.settings.conftest import Write
from tests.unit.ops.settings.loading import load, problems


def test_retention_and_wakeup_are_passed_to_the_relay(write: Write) -> None:
    settings = load(write('[relay.retention]\nhistory = "1 day"\ndead = "forever"\n[relay]\nwakeup = "none"'))
    assert settings.relay.config.retention == RetentionConfig(history="1 day", dead="forever")
    assert settings.relay.config.wakeup == "none"


def test_history_can_be_disabled_or_kept_forever(write: Write) -> None:
    assert load(write("[store]\nhistory = false")).store.history is False
    assert load(PILLARBOX_STORE__HISTORY="off").store.history is False
    kept = load(write('[relay.retention]\nhistory = "forever"')).relay.config.retention
    assert kept.in_seconds.history is None


@pytest.mark.parametrize(("text", "ledger"), [("true", True), ("off", False), ("history", "history")])
def test_a_ledger_is_a_flag_or_the_history(text: str, ledger: object) -> None:
    assert load(PILLARBOX_STORE__LEDGER=text).store.ledger == ledger


def test_at_most_once_is_passed_to_the_relay(write: Write) -> None:
    settings = load(write("[store]\nledger = true\n[relay]\nat_most_once = true"))
    assert settings.relay.config.at_most_once


def test_max_payload_applies_to_the_tables_too(write: Write) -> None:
    assert load(write('[record]\nmax_payload = "2 MiB"')).store.max_payload == 2 * 1024**2


def test_each_retry_policy(write: Write) -> None:
    fixed = load(write('[relay.retry]\npolicy = "fixed"\ndelay = "1s"\nmax_attempts = "unlimited"'))
    assert fixed.relay.policy == FixedDelay(delay="1s", max_attempts="unlimited")
    assert load(write('[relay.retry]\npolicy = "none"')).relay.policy == NoRetry()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "[relay]\nbatchsize = 5",
            "relay.batchsize in pillarbox.toml is not a setting; did you mean relay.batch_size?",
        ),
        ("[relay]\nmax-retries = 5", "did you mean relay.retry.max_attempts?"),
        (
            "[store]\nbatch_size = 5",
            "store.batch_size in pillarbox.toml is not a setting; did you mean relay.batch_size?",
        ),
        ("[relais]\nname = 'a'", "relais in pillarbox.toml is not a setting; did you mean relay?"),
        ("[store]\nzzz = 1", "there are url, name, schema, prefix, history, ledger"),
        (
            "[relay]\nbatch_size = 'many'",
            "relay.batch_size in pillarbox.toml is 'many': write an integer, 1 or more",
        ),
        ("[relay]\nbatch_size = true", "relay.batch_size in pillarbox.toml is True: write an integer"),
        ("[relay]\nenabled = 'yes'", "relay.enabled in pillarbox.toml is 'yes': write true or false"),
        ("[relay]\npoll_interval = 1000", "a number has no unit; write for example 1000ms, 1000s or 1000h"),
        ("[relay]\noutages = 'ignore'", 'relay.outages in pillarbox.toml is \'ignore\': write "wait" or "count"'),
        (
            "[console]\nroot_path = 'outbox'",
            "console.root_path in pillarbox.toml is 'outbox': write a path that begins",
        ),
        ("[console]\nroot_path = '/outbox/'", "begins with a slash and ends with none, for example /outbox"),
        ("[console]\nsecret = 'short'", "console.secret in pillarbox.toml: write at least 16 characters"),
        ("[store]\nhistory = 'off'", "store.history in pillarbox.toml is 'off': write true or false"),
        ("[store]\nledger = 'maybe'", "store.ledger in pillarbox.toml is 'maybe': write true, false or 'history'"),
        (
            "[relay.retention]\nhistory = 'long'",
            "relay.retention.history in pillarbox.toml is 'long': write a duration",
        ),
        ("[relay.retention]\nhistory = 'long'", 'or 7 days, or "forever"'),
        ("[store]\nprefix = 'a-b'", "store.prefix in pillarbox.toml is 'a-b': prefix 'a-b' is not a plain identifier"),
        ("[record]\nmax_payload = '1 GiB'", "record.max_payload in pillarbox.toml is '1 GiB': write a size"),
        ("relay = 5", "relay in pillarbox.toml is not a table: write [relay]"),
        ("transports = 5", "transports in pillarbox.toml is not a table: write [transports.NAME]"),
        ("[routes]\nto = ['a']", "routes in pillarbox.toml is not a list: write [[routes]] for each"),
        ("[[routes]]\nevent_type = '*'", "routes[0].to is missing in pillarbox.toml"),
        ("[transports.r]\nurl = 'amqp://mq/'\n[[transports.r.queues]]\nnam = 'q'", "transports.r.queues[0].nam in"),
    ],
)
def test_an_error_names_its_location(write: Write, text: str, problem: str) -> None:
    assert problem in "\n".join(problems(write(text)))


def test_incompatible_settings_are_both_named(write: Write) -> None:
    [problem] = problems(write("[relay]\nheartbeat_interval = '5s'"), PILLARBOX_RELAY__LEASE="12s")
    assert problem.startswith(
        "PILLARBOX_RELAY__LEASE is 12s: it must be at least 3 × relay.heartbeat_interval in pillarbox.toml (5s), "
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [(b"[store", "is not TOML"), (b"[store]\nurl = 'canary-password", "is not TOML"), (b"\xff", "is not UTF-8")],
)
def test_an_unreadable_file_is_never_quoted(tmp_path: Path, text: bytes, said: str) -> None:
    (tmp_path / "broken.toml").write_bytes(text)
    with pytest.raises(ConfigurationError, match=said) as raised:
        load(tmp_path / "broken.toml")
    assert "canary-password" not in str(raised.value)


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"nowhere.toml cannot be read: No such file"):
        load(tmp_path / "nowhere.toml")


def test_the_file_can_be_chosen(write: Write) -> None:
    assert find_file("a.toml", {"PILLARBOX_CONFIG": "b.toml"}) == Path("a.toml")
    assert find_file(None, {"PILLARBOX_CONFIG": "b.toml"}) == Path("b.toml")
    assert find_file(None, {}) is None
    write("")
    assert find_file(None, {}) == Path("pillarbox.toml")


def test_zero_is_a_limit_and_no_limit_is_a_word(write: Write) -> None:
    zero = load(write("[relay.health]\nmax_backlog = 0\nmax_age = '0s'")).relay.health
    assert (zero.backlog_limit, zero.age_limit) == (0, 0.0)
    unlimited = load(write("[relay.health]\nmax_backlog = 'unlimited'\nmax_age = 'forever'")).relay.health
    assert (unlimited.backlog_limit, unlimited.age_limit) == (None, None)
    assert problems(write("[relay.retry]\nmax_attempts = 0")) == [
        'relay.retry.max_attempts in pillarbox.toml is 0: write an integer, 1 or more, or "unlimited"'
    ]
    rabbit = "[transports.mq]\nurl = 'amqp://mq'\nheartbeat = "
    assert load(write(rabbit + "'never'")).transports["mq"].rabbitmq.heartbeat == "never"
    [problem] = problems(write(rabbit + "'0s'"))
    assert "transports.mq.heartbeat in pillarbox.toml is '0s': write a duration from 1s, " in problem


def test_timeout_and_workers_are_keys_of_handlers_only(write: Write) -> None:
    settings = load(write("[transports.h]\nimport = 'shop:handlers'\ntimeout = 'forever'\nworkers = 4"))
    assert settings.transports["h"].own == {"timeout": "forever", "workers": 4}
    [problem] = problems(write("[transports.mq]\nurl = 'amqp://mq'\nworkers = 4"))
    assert problem == "transports.mq.workers in pillarbox.toml is only for handlers, and this is rabbitmq: remove it"


def test_a_statement_timeout_and_strict_order_have_keys(write: Write) -> None:
    settings = load(
        write("[store]\nurl = 'postgresql://db/shop'\nstatement_timeout = '1m'\n[record]\nstrict_order = true")
    )
    assert (settings.store.statement_timeout, settings.record.strict_order) == ("1m", True)
    assert settings.notes == ()
