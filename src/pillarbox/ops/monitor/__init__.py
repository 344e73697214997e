"""What a relay or a consumer shows of itself over HTTP: metrics for Prometheus, health for whoever starts it anew.

looking.py     the store, looked at no more often than every few seconds, however often somebody asks
queues.py      the dead-letter queues of brokers, asked in the background: nobody waits for them
judging.py     alive? ready? healthy? Decisions only
pages.py       /metrics, /livez, /readyz, /health
serving.py     the port
relay.py       a relay's pages
consumer.py    a consumer's pages
"""
