"""A dead letter that goes out again with another content, and what is remembered of the one it had.

The message says by a header that it is not what the producer recorded, and names the payload it had by its hash; the
audit has the hash and the size of both, and the names of the headers. Neither has the content.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

AMENDED = "amended"
"""The header with the SHA-256 of the payload that an edited message had before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Amendment:
    """What becomes of a dead letter's content."""

    old_payload: bytes
    old_headers: Mapping[str, Any]
    payload: bytes
    headers: Mapping[str, Any]

    @classmethod
    def of(
        cls, old_payload: bytes, old_headers: str, *, payload: bytes | None, headers: Mapping[str, str] | None
    ) -> Amendment:
        """From what a table has and what is asked for; None leaves as it is."""
        try:
            had: dict[str, Any] = json.loads(old_headers)
        except (ValueError, RecursionError):
            had = {}  # too deep or too long to be decoded, and so never sent: it goes out without them
        return cls(
            old_payload=old_payload,
            old_headers=had,
            payload=old_payload if payload is None else payload,
            headers=had if headers is None else headers,
        )

    @property
    def changes(self) -> bool:
        """Would anything be different?"""
        return self.payload != self.old_payload or dict(self.headers) != dict(self.old_headers)

    @property
    def headers_json(self) -> str:
        """The headers that it goes out with."""
        marked = dict(self.headers) | {AMENDED: _hash(self.old_payload)}
        return json.dumps(marked, ensure_ascii=False, separators=(",", ":"))

    @property
    def told(self) -> dict[str, Any]:
        """What changes, without the content: hash and size of both payloads, names of headers."""
        old, new = self.old_headers, self.headers
        return {
            "payload": {"old": _figures(self.old_payload), "new": _figures(self.payload)},
            "headers": {
                "set": sorted(name for name, value in new.items() if name not in old or old[name] != value),
                "removed": sorted(name for name in old if name not in new),
            },
        }


def _figures(payload: bytes) -> dict[str, Any]:
    return {"sha256": _hash(payload), "bytes": len(payload)}


def _hash(payload: bytes) -> str:
    return sha256(payload).hexdigest()
