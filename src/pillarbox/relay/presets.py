"""Settings that belong together, by the kind of place a relay runs in. What is written out wins over a preset."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from pillarbox.core.clock import Duration
from pillarbox.core.retry import ExponentialBackoff


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """How often to look, how much to take, and when to try again."""

    poll_interval: Duration
    batch_size: int
    retry: ExponentialBackoff


def _retries(number: int, *, longest: Duration) -> ExponentialBackoff:
    return ExponentialBackoff(base="1s", multiplier=2, max=longest, jitter="none", max_attempts=number + 1)


PRESETS: Mapping[str, Preset] = MappingProxyType(
    {
        "development": Preset(poll_interval="5s", batch_size=50, retry=_retries(3, longest="60s")),
        "staging": Preset(poll_interval="5s", batch_size=100, retry=_retries(5, longest="300s")),
        "production": Preset(poll_interval="5s", batch_size=100, retry=_retries(10, longest="600s")),
        "high-volume": Preset(poll_interval="1s", batch_size=500, retry=_retries(10, longest="600s")),
    }
)
