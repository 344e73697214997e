"""A receipt: a consumer has admitted an event, and does not do so again while the receipt is kept."""

from __future__ import annotations

from typing import NamedTuple, Protocol, runtime_checkable

from pillarbox.core.tally import Tally

RETENTION = "120 days"
"""How long receipts are kept unless told otherwise: longer than an event may still come again."""
REDELIVERY = "90 days"
"""As long as dead letters are kept unless told otherwise: until then a person may send one again."""


class Receipt(NamedTuple):
    """Which consumer, which event."""

    consumer: str
    event_id: str


@runtime_checkable
class InProcessInbox(Protocol):
    """A transaction of a store that lives in this process; receipts and tallies are written to it without SQL."""

    def admit_receipt(self, receipt: Receipt) -> bool:
        """Write a receipt that counts once the transaction commits; False if there is one already.

        Raises InboxError while another open transaction has written the same: it may still roll back.
        """
        ...

    def add_tally(self, tally: Tally) -> None:
        """Add what a consumer met, which counts once the transaction commits."""
        ...
