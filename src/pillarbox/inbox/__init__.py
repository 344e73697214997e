"""Idempotent handling: a processed-event record in the transaction of the effect tells a repeat from a first delivery.

inbox.py       the guard: admit an event once per consumer
consumer.py    receive → admit → handle → commit → ack
effects.py     the functions of a consumer, each called in a transaction of its own
decisions.py   what becomes of a message that failed
statistics.py  what a consumer did, counted and written every ten seconds
"""

from pillarbox.inbox.body_fields import BodyFields
from pillarbox.inbox.consumed import ConsumedEvent
from pillarbox.inbox.consumer import Consumer
from pillarbox.inbox.inbox import Inbox

__all__ = ["BodyFields", "ConsumedEvent", "Consumer", "Inbox"]
