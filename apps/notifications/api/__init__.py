"""What users see: preferences, notifications and their deliveries over HTTP, and new ones as they come.

app.py          puts it together: `create_app(engine, authenticate=…)`
serving.py      runs it, and ends the live streams when it is told to stop
routes/         what may be asked for, and with which limits
queries/        every statement
live.py         who follows, and how they hear of news
problems.py     every error, as application/problem+json
"""
