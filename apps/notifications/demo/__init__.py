"""`python -m apps.notifications.demo`: the whole path, from an order to the user's screen, and a verdict.

cast.py        who is told, and how: written by hand, and what the verdict goes by
stage.py       where it plays: a temporary SQLite, or your PostgreSQL and RabbitMQ, left as they were
outside.py     the world outside: a mail server that breaks and comes back, and a gateway for push and SMS
play.py        the course: business goes on, mail breaks, everything drains
watching.py    what is to be seen at the moment
view.py        a live table for a terminal, lines for a pipe
verdict.py     what should have happened against what did
"""
