"""`python -m apps.ingestion.demo`: documents on their way, uploaded through the real API, and a verdict.

place.py     a database and, if asked for, a broker of the demo's own, gone afterwards
system.py    the processes: the service, and with a broker the two consumers
course.py    upload, watch, drain, judge
showing.py   the live table, and lines where there is no terminal
"""
