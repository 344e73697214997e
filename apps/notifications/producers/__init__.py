"""Layer 1: business services. Each writes its own row and its events in one transaction, and knows no recipients.

reservations.py   RESERVATION_REQUESTED, for everybody at the restaurant
orders.py         ORDER_CREATED, for the customer's user who ordered
registration.py   USER_REGISTERED, once for the agency and once for the administrators
announcing.py     what their events have in common
"""
