"""Resolves a message into one notification per user and channel.

quiet_hours.py    whether a user has quiet hours now, and when they end
preferences.py    the channels of a user for an event
recipients.py     the recipients: all queries
wording.py        title and body
orchestrator.py   combines them
"""
