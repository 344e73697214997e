"""The services behind the queues. Effect and following event are one transaction, once per event."""
