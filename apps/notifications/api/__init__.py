"""The HTTP API: preferences, notifications, their deliveries, and a live feed of new ones.

app.py          assembles it: `create_app(engine, authenticate=…)`
serving.py      runs it, and ends the live streams when it stops
routes/         the endpoints and their limits
queries/        all SQL statements
live.py         the clients of the live feed
problems.py     every error, as application/problem+json
"""
