"""An outbox rejects invalid settings when it is created."""

from typing import Any

import pytest

from pillarbox import ConfigurationError, Outbox
from pillarbox.core.text import LARGEST_PAYLOAD, payload_limit


@pytest.mark.parametrize(
    ("setting", "value", "reason"),
    [
        ("prefix", "outbox-", "not a plain identifier"),
        ("prefix", 'x"; DROP TABLE y; --', "not a plain identifier"),
        ("prefix", "x" * 64, "too long"),
        ("schema", "", "schema is empty"),
        ("schema", None, "schema is empty"),
        ("schema", "a.b", "not a plain identifier"),
        ("duplicate", "update", "duplicate is 'update'; use 'error' or 'ignore'"),
        ("wakeup", "always", "wakeup is 'always'; use 'notify' or 'none'"),
        ("max_payload", 0, "from 1 byte to 64 MiB"),
        ("max_payload", "65 MiB", "from 1 byte to 64 MiB"),
        ("max_payload", "a batch", "is not a size"),
        ("max_payload", "1 TiB", "is not a size"),
        ("max_payload", "1 GiB", "from 1 byte to 64 MiB"),
        ("max_payload", True, "is not a size"),
        ("max_payload", 1.5, "is not a size"),
    ],
)
def test_an_invalid_setting_is_named(setting: str, value: Any, reason: str) -> None:
    with pytest.raises(ConfigurationError, match=reason) as caught:
        Outbox(**{setting: value})
    assert setting in str(caught.value)


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
        ("64 MiB", LARGEST_PAYLOAD),
    ],
)
def test_sizes_are_bytes_or_text_with_a_unit(written: Any, size: int) -> None:
    assert payload_limit(written) == size
