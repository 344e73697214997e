"""An outbox rejects invalid settings when it is created."""

from typing import Any

import pytest

from pillarbox import ConfigurationError, Outbox
from pillarbox.core.payload import MAX_PAYLOAD_BYTES, payload_limit


@pytest.mark.parametrize(
    ("setting", "value", "reason"),
    [
        ("duplicate", "update", """is 'update': write "error" or "ignore\""""),
        ("wakeup", "always", """is 'always': write "notify" or "none\""""),
        ("max_payload", 0, "from 1 byte to 64 MiB"),
        ("max_payload", "65 MiB", "from 1 byte to 64 MiB"),
        ("max_payload", "a batch", "from 1 byte to 64 MiB, for example 256 KiB"),
        ("max_payload", "1 TiB", "from 1 byte to 64 MiB, for example 256 KiB"),
        ("max_payload", "1 GiB", "from 1 byte to 64 MiB"),
        ("max_payload", True, "from 1 byte to 64 MiB, for example 256 KiB"),
        ("max_payload", 1.5, "from 1 byte to 64 MiB, for example 256 KiB"),
    ],
)
def test_an_invalid_setting_is_named(setting: str, value: Any, reason: str) -> None:
    with pytest.raises(ConfigurationError, match=reason) as caught:
        Outbox(**{setting: value})
    assert str(caught.value).startswith(f"Outbox.{setting}")


@pytest.mark.parametrize(
    ("written", "size"),
    [
        ("1 MiB", 1024**2),
        ("1MiB", 1024**2),
        (" 256 kib ", 256 * 1024),
        ("500 KB", 500_000),
        ("2 mb", 2_000_000),
        ("17", 17),
        ("17 bytes", 17),
        (1, 1),
        ("64 MiB", MAX_PAYLOAD_BYTES),
    ],
)
def test_sizes_are_bytes_or_text_with_a_unit(written: Any, size: int) -> None:
    assert payload_limit(written) == size
