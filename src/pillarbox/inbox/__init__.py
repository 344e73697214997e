"""Idempotent handling: an inbox record in the transaction of the handler identifies duplicates.

inbox.py            admits an event once per consumer
consumer.py         receive → admit → handle → commit → ack
dispatch.py         calls the handler of an event in a transaction
acknowledgement.py  decides between ack, retry and dead letter
outages.py          retries while the broker or the database is unavailable
statistics.py       counts what a consumer processes
"""

from pillarbox.inbox.consumed_event import BodyFields, ConsumedEvent
from pillarbox.inbox.consumer import Consumer
from pillarbox.inbox.inbox import Inbox

__all__ = ["BodyFields", "ConsumedEvent", "Consumer", "Inbox"]
