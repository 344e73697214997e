"""Layer 3: from a notification to the user. Each delivery is an event of the `delivery_` outbox.

listener ──record──▶ delivery_message ──relay──▶ email.py · webhook.py (push, SMS) · in_app.py ──▶ notification_delivery

What must stay true: a channel has its own threads, breaker, retries and dead letters, so that a broken mail server
harms no push; and whatever goes out carries the id of its event, the same on every try.
"""
