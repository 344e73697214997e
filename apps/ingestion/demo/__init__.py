"""`python -m apps.ingestion.demo`: uploads documents through the real API and verifies that each is enriched.

environment.py   a temporary database and, on request, the queues on a broker; removed afterwards
processes.py     the service, and with a broker the two consumers
scenario.py      upload, poll, drain, verify
view.py          a live table on a terminal, lines elsewhere
"""
