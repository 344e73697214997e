"""How messages leave: one file or folder per way out, each with an address type of its own.

Accepted means durably accepted. Every failure becomes a verdict here; no driver exception leaves this folder.
"""
