"""The certificate of a webhook receiver expires under load, and is replaced: nothing is lost."""

from __future__ import annotations

import socket
import ssl
from contextlib import closing

from tests.extremes.conftest import MakeScene
from tests.extremes.links import FaultyProxy
from tests.extremes.receiving import WebhookReceiver
from tests.extremes.relays import MAX_IN_FLIGHT
from tests.servers.availability import available
from tests.servers.certificates import DAY, Authority

EVENTS = 200
SHORT = 15
"""Seconds of the shortest certificate."""
REASON = "certificate has expired"
EXPIRED = 10
"""OpenSSL's code for an expired certificate."""


def is_expired(authority: Authority, port: int) -> bool:
    context = ssl.create_default_context(cafile=authority.certificate)
    with socket.create_connection(("127.0.0.1", port)) as connection:
        try:
            context.wrap_socket(connection, server_hostname="localhost").close()
        except ssl.SSLCertVerificationError as error:
            return error.verify_code == EXPIRED
    return False


def test_a_certificate_that_expires_and_is_replaced_loses_nothing(make_scene: MakeScene, postgres_url: str) -> None:
    """Open connections go on; new ones are refused until the certificate is replaced."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with (
        closing(available(Authority)) as authority,
        closing(WebhookReceiver(tls=context)) as receiver,
        closing(FaultyProxy(receiver.port)) as link,
    ):

        def use(seconds: int) -> None:
            authority.issue(seconds=seconds)
            context.load_cert_chain(authority.issued, authority.key)

        use(DAY)
        scene = make_scene(
            store=postgres_url,
            TRANSPORTS__WEBHOOK__URL=f"https://localhost:{link.port}/",
            TRANSPORTS__WEBHOOK__CA_FILE=str(authority.certificate),
            TRANSPORTS__WEBHOOK__ALLOW_NETWORKS="127.0.0.0/8,::1/128",
        )
        relay = scene.start()

        def is_connected_in_time(seconds: int) -> bool:
            use(seconds)
            link.reset()
            scene.wait_delivered(EVENTS)
            return not is_expired(authority, receiver.port)

        with scene.under_load():
            seconds = SHORT
            while not is_connected_in_time(seconds):
                seconds *= 2
            scene.wait_until(lambda: is_expired(authority, receiver.port), what="the certificate expires")
            scene.wait_delivered(EVENTS)
            link.reset()
            scene.wait_until(lambda: relay.said(REASON), what="the relay refuses the certificate")
            use(DAY)
            scene.wait_delivered(EVENTS)
        scene.write(EVENTS)
        scene.wait_drained()
        assert relay.running
        scene.stop()
        assert scene.attempts() == 0
        scene.assert_sound([event_id for event_id, _ in receiver.received], duplicates=2 * MAX_IN_FLIGHT)
