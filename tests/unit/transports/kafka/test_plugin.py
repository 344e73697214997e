"""The URL of a cluster: hosts, login and TLS become settings of librdkafka, and secrets are never shown."""

import pytest

from pillarbox.core.errors import ConfigurationError
from pillarbox.transports.kafka.plugin import KafkaAddress, KafkaEndpoint, KafkaOptions
from pillarbox.transports.kafka.records import due_of, failed_headers, incoming_of


def settings(url: str, **options: object) -> dict[str, object]:
    return KafkaEndpoint.parse(url, KafkaOptions(**options)).settings()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("url", "servers", "protocol"),
    [
        ("kafka://k1", "k1:9092", "PLAINTEXT"),
        ("kafka://k1:1,k2:2/", "k1:1,k2:2", "PLAINTEXT"),
        ("kafka://[::1]:9093,[::2]", "[::1]:9093,[::2]:9092", "PLAINTEXT"),
        ("kafkas://k1", "k1:9092", "SSL"),
        ("kafka://app:pw@k1", "k1:9092", "SASL_PLAINTEXT"),
        ("kafkas://app:pw@k1:9094", "k1:9094", "SASL_SSL"),
    ],
)
def test_a_url_names_the_servers_and_the_protocol(url: str, servers: str, protocol: str) -> None:
    found = settings(url)
    assert (found["bootstrap.servers"], found["security.protocol"]) == (servers, protocol)


def test_a_login_is_decoded_and_has_a_mechanism() -> None:
    found = settings("kafkas://app:p%40ss%2Fw%3Ard@k1", sasl_mechanism="PLAIN", ca_file="/etc/ca.pem")
    assert (found["sasl.username"], found["sasl.password"], found["sasl.mechanism"]) == ("app", "p@ss/w:rd", "PLAIN")
    assert found["ssl.ca.location"] == "/etc/ca.pem"


@pytest.mark.parametrize(
    ("verify", "expected"),
    [
        ("full", {}),
        ("ca", {"ssl.endpoint.identification.algorithm": "none"}),
        (
            "none",
            {"ssl.endpoint.identification.algorithm": "none", "enable.ssl.certificate.verification": False},
        ),
    ],
)
def test_tls_settings_are_those_of_librdkafka(verify: str, expected: dict[str, object]) -> None:
    found = settings("kafkas://k1", cert_file="/etc/app.pem", key_file="/etc/app.key", verify=verify)
    files = {"ssl.certificate.location": "/etc/app.pem", "ssl.key.location": "/etc/app.key"}
    assert {name: value for name, value in found.items() if "ssl." in name} == files | expected


def test_neither_user_nor_password_nor_client_settings_are_shown() -> None:
    endpoint = KafkaEndpoint.parse("kafka://app:s3cret@k1", KafkaOptions(client={"ssl.key.password": "hush"}))
    shown = f"{endpoint} {endpoint!r}"
    assert [secret for secret in ("app", "s3cret", "hush") if secret in shown] == []


def test_settings_of_the_client_are_passed_on() -> None:
    assert settings("kafka://k1", client={"compression.type": "lz4"})["compression.type"] == "lz4"


@pytest.mark.parametrize(
    "name",
    [
        "acks",
        "partitioner",
        "message.timeout.ms",
        "topic.acks",
        "topic.partitioner",
        "topic.message.timeout.ms",
        "default.topic.config",
        "enable.idempotence",
        "group.id",
    ],
)
def test_a_setting_on_which_delivery_depends_is_rejected_under_each_of_its_names(name: str) -> None:
    with pytest.raises(ConfigurationError, match=name):
        settings("kafka://k1", client={name: "1"})


def test_addresses_with_one_topic_are_equal() -> None:
    assert KafkaAddress(topic="a") == KafkaAddress(topic="a") != KafkaAddress(topic="{event_type}")


@pytest.mark.parametrize("written", [b"", b"soon", b"-1", b"1e9", b"9" * 40, b"\xff", None])
def test_a_due_time_and_counts_that_cannot_be_read_count_as_none(written: bytes | None) -> None:
    headers = [("pillarbox-due", written), ("pillarbox-attempts", written), ("pillarbox-deferrals", written)]
    incoming = incoming_of(None, headers, "orders")
    assert (due_of(headers), incoming.attempts, incoming.deferrals, incoming.body) == (0.0, 0, 0, b"")


def test_a_failure_counts_and_replaces_what_was_written_before() -> None:
    headers = [("eventId", b"a"), ("pillarbox-attempts", b"2"), ("pillarbox-due", b"1000"), ("raw", b"\xff")]
    failed = failed_headers(
        headers, incoming_of(b"", headers, "orders"), topic="orders", reason="x\ud800" * 1000, counted=True, due=12.5
    )
    found = dict(failed)
    assert len(failed) == len(found)
    assert (found["pillarbox-attempts"], found["pillarbox-deferrals"], found["raw"]) == (b"3", b"0", b"\xff")
    assert (found["pillarbox-due"], found["pillarbox-queue"]) == (b"12500", b"orders")
    assert len(found["pillarbox-reason"] or b"") <= 1000
    final = dict(failed_headers(headers, incoming_of(b"", headers, "t"), topic="t", reason="r", counted=True, due=None))
    assert "pillarbox-due" not in final
