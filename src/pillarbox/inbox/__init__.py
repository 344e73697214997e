"""Handled once, in effect: a receipt in the same transaction as the effect tells a repeat from a first time.

inbox.py       the guard: admit an event once per consumer
consumer.py    receive → admit → handle → commit → ack
effects.py     the functions of a consumer, each called in a transaction of its own
verdicts.py    what becomes of a message that failed
tally.py       what a consumer met, counted and now and then written down
"""

from pillarbox.inbox.body_fields import BodyFields
from pillarbox.inbox.consumed import ConsumedEvent
from pillarbox.inbox.consumer import Consumer
from pillarbox.inbox.inbox import Inbox

__all__ = ["BodyFields", "ConsumedEvent", "Consumer", "Inbox"]
