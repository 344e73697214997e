import pytest

from pillarbox.ops.latency import latency


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (None, ""),
        (0.0, "0.0 ms"),
        (0.0034, "3.4 ms"),
        (0.0123, "12 ms"),
        (0.25, "250 ms"),
        (1.25, "1.2 s"),
        (30.0, "30.0 s"),
    ],
)
def test_a_send_is_told_in_milliseconds_or_seconds(seconds: float | None, told: str) -> None:
    assert latency(seconds) == told
