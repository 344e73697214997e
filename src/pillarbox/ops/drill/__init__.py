"""`pillarbox drill`: faults on the user's own store and transport, then a comparison of independent ledgers.

writers (log intent and outcome) → relays that are killed, frozen and drained → readers (log arrivals, count effects)
→ checker (compares the ledgers) → report
"""
