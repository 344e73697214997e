"""Layer 3: delivers notifications to users. Each delivery is an event of the `delivery_` outbox.

listener ──record──▶ delivery_message ──relay──▶ email.py · webhook.py (push, SMS) · in_app.py ──▶ notification_delivery

Invariants: each channel has its own threads, circuit breaker, retries and dead letters, so that an unavailable mail
server does not affect push messages. Every message carries the id of its event, the same on every attempt.
"""
