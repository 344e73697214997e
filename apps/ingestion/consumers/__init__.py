"""The consumers of the queues. The inbox admits each event once; its effect and the next event are one transaction."""
