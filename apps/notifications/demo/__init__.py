"""`python -m apps.notifications.demo`: sends events through all three layers and verifies the result.

users.py          the users and their channels: the database is filled from them, and the verification uses them
environment.py    a temporary SQLite database, or temporary resources on PostgreSQL and RabbitMQ
servers.py        a mail server that can be stopped, and a gateway for push and SMS
scenario.py       records events, stops the mail server for a while, drains
progress.py       the state of all notifications at one moment
view.py           a live table on a terminal, lines elsewhere
verification.py   compares expected and actual notifications and deliveries
"""
