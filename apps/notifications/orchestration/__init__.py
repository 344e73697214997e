"""From one message to one notification for each user and channel.

quiet_hours.py    when a user does not want to be disturbed, and until when
preferences.py    which channels reach a user for an event
recipients.py     who they are: every question to the database
wording.py        what they read
orchestrator.py   all of it together: every recipient by every channel
"""
