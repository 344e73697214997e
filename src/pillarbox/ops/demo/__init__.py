"""`pillarbox demo`: a small order service, a relay that may be killed, and a verdict that asks neither of them.

scene → shop (writes orders and events) → relay process → handlers or consumer (write the ledger) → verdict
"""
