"""Layer 1: business services. Each inserts its row and records its events in one transaction, without recipients.

reservations.py   RESERVATION_REQUESTED, for all users of the restaurant
orders.py         ORDER_CREATED, for the user who ordered
registration.py   USER_REGISTERED, once for the agency and once for the administrators
announcing.py     creates their events
"""
