"""What the settings file says, and how an error in it names the place."""

from pathlib import Path

import pytest

from pillarbox.core.errors import ConfigurationError
from pillarbox.core.retry import FixedDelay, NoRetry
from pillarbox.ops.settings.sources import find_file
from tests.unit.ops.settings.conftest import Write
from tests.unit.ops.settings.loading import load, problems


def test_retention_and_the_wakeup_reach_the_relay(write: Write) -> None:
    settings = load(write('[store]\nhistory = "1 day"\ndead_retention = "forever"\n[record]\nwakeup = "none"'))
    assert (settings.relay.config.history, settings.relay.config.dead) == ("1 day", None)
    assert settings.relay.config.wakeup == "none"


def test_how_long_receipts_are_kept_reaches_the_relay(write: Write) -> None:
    assert load(write('[store]\ninbox_retention = "200 days"')).relay.config.receipts == "200 days"
    assert load(write('[store]\ninbox_retention = "forever"')).relay.config.receipts is None


def test_history_may_be_switched_off_or_kept_for_ever(write: Write) -> None:
    off = load(write('[store]\nhistory = "off"'))
    assert off.store.keeps_history is False
    forever = load(write('[store]\nhistory = "forever"'))
    assert (forever.store.keeps_history, forever.relay.config.history) == (True, None)


def test_the_largest_payload_is_also_the_tables(write: Write) -> None:
    assert load(write('[record]\nmax_payload = "2 MiB"')).store.max_payload == 2 * 1024**2


def test_each_retry_policy(write: Write) -> None:
    constant = load(write('[relay.retry]\npolicy = "constant"\nbase = "1s"\nmax_attempts = 0'))
    assert constant.relay.policy == FixedDelay(wait="1s", max_attempts=0)
    assert load(write('[relay.retry]\npolicy = "none"')).relay.policy == NoRetry()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[relay]\nbatchsize = 5", "relay.batchsize in pillarbox.toml is no setting; did you mean relay.batch_size?"),
        ("[relay]\nmax-retries = 5", "did you mean relay.retry.max_attempts?"),
        ("[store]\nbatch_size = 5", "store.batch_size in pillarbox.toml is no setting; did you mean relay.batch_size?"),
        ("[relais]\nname = 'a'", "relais in pillarbox.toml is no setting; did you mean relay?"),
        ("[store]\nzzz = 1", "there are url, schema, prefix, history, dead_retention"),
        (
            "[relay]\nbatch_size = 'many'",
            "relay.batch_size in pillarbox.toml is 'many': write a whole number, 1 or more",
        ),
        ("[relay]\nbatch_size = true", "relay.batch_size in pillarbox.toml is True: write a whole number"),
        ("[relay]\nenabled = 'yes'", "relay.enabled in pillarbox.toml is 'yes': write true or false"),
        ("[relay]\npoll_interval = 1000", "a number has no unit; write for example 1000ms, 1000s or 1000h"),
        ("[relay]\noutages = 'ignore'", 'relay.outages in pillarbox.toml is \'ignore\': write "wait" or "count"'),
        (
            "[console]\nroot_path = 'outbox'",
            "console.root_path in pillarbox.toml is 'outbox': write a path that begins",
        ),
        ("[console]\nroot_path = '/outbox/'", "begins with a slash and ends with none, for example /outbox"),
        ("[console]\nsecret = 'short'", "console.secret in pillarbox.toml: write at least 16 characters"),
        ("[store]\nhistory = 'long'", 'or 7 days, or "off", or "forever"'),
        ("[store]\nprefix = 'a-b'", "store.prefix in pillarbox.toml 'a-b' is not a plain identifier"),
        ("[record]\nmax_payload = '1 GiB'", "record.max_payload in pillarbox.toml is '1 GiB': write a size"),
        ("relay = 5", "relay in pillarbox.toml is no table: write [relay]"),
        ("transports = 5", "transports in pillarbox.toml is no table: write [transports.NAME]"),
        ("[routes]\nto = ['a']", "routes in pillarbox.toml is no list: write [[routes]] for each"),
        ("[[routes]]\nevent_type = '*'", "routes[0].to is missing in pillarbox.toml"),
        ("[transports.r]\nurl = 'amqp://mq/'\n[[transports.r.queues]]\nnam = 'q'", "transports.r.queues[0].nam in"),
    ],
)
def test_a_mistake_is_named_by_its_place(write: Write, text: str, problem: str) -> None:
    assert problem in "\n".join(problems(write(text)))


def test_a_figure_that_does_not_fit_another_names_both(write: Write) -> None:
    [problem] = problems(write("[relay]\nheartbeat = '5s'"), PILLARBOX_RELAY__LEASE="12s")
    assert problem.startswith("relay.heartbeat in pillarbox.toml 5s is too slow for PILLARBOX_RELAY__LEASE 12s: ")


@pytest.mark.parametrize(
    ("text", "said"),
    [(b"[store", "is not TOML"), (b"[store]\nurl = 'canary-password", "is not TOML"), (b"\xff", "is not UTF-8")],
)
def test_a_file_that_cannot_be_read_is_never_quoted(tmp_path: Path, text: bytes, said: str) -> None:
    (tmp_path / "broken.toml").write_bytes(text)
    with pytest.raises(ConfigurationError, match=said) as raised:
        load(tmp_path / "broken.toml")
    assert "canary-password" not in str(raised.value)


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"nowhere.toml cannot be read: No such file"):
        load(tmp_path / "nowhere.toml")


def test_which_file_it_is(write: Write) -> None:
    assert find_file("a.toml", {"PILLARBOX_CONFIG": "b.toml"}) == Path("a.toml")
    assert find_file(None, {"PILLARBOX_CONFIG": "b.toml"}) == Path("b.toml")
    assert find_file(None, {}) is None
    write("")
    assert find_file(None, {}) == Path("pillarbox.toml")
