import pytest
from starlette.requests import Request

from pillarbox.ops.console.addresses import client_of, network


@pytest.mark.parametrize(
    ("peer", "forwarded", "reported"),
    [
        ("10.0.0.7", "203.0.113.9", "203.0.113.9"),
        ("10.0.0.7", "1.2.3.4, 203.0.113.9, 10.0.0.8", "203.0.113.9"),  # what stands before was made up
        ("198.51.100.1", "203.0.113.9", "198.51.100.1"),  # no proxy of ours
        ("10.0.0.7", "203.0.113.9, nonsense", "10.0.0.7"),
        ("10.0.0.7", "", "10.0.0.7"),
        ("10.0.0.7", ", ".join(["10.0.0.9"] * 5000), "10.0.0.9"),
        ("2001:db8::1", "", "2001:db8::/64"),
        ("10.0.0.7", "2001:db8::ffff:1", "2001:db8::/64"),
        ("::ffff:198.51.100.1", "", "198.51.100.1"),
        ("", "203.0.113.9", ""),
    ],
)
def test_only_trusted_proxies_are_believed(peer: str, forwarded: str, reported: str) -> None:
    headers = [(b"x-forwarded-for", forwarded.encode())] if forwarded else []
    request = Request({"type": "http", "headers": headers, "client": (peer, 1) if peer else None})
    assert client_of(request, [network("10.0.0.0/24")]) == reported
