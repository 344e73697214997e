"""`pillarbox demo`: an order service and a relay that can be killed, then a check that nothing was lost.

environment → order service (writes orders and events) → relay process → handlers or consumer (write the ledger)
→ verification (compares the orders with the ledger)
"""
