import pytest

from pillarbox.ops.formatting import format_bytes, format_latency


@pytest.mark.parametrize(("count", "text"), [(5, "5 B"), (2048, "2.0 KiB"), (5 * 1024**2, "5.0 MiB")])
def test_bytes_have_the_largest_unit_that_fits(count: int, text: str) -> None:
    assert format_bytes(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
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
def test_a_latency_is_in_milliseconds_or_seconds(seconds: float | None, text: str) -> None:
    assert format_latency(seconds) == text
