"""The document ingestion service: uploads are stored and announced in one transaction, then validated and enriched.

settings.py      what the environment says, checked at the start
database.py      the engine of the business tables, PostgreSQL or SQLite
tables.py        documents, idempotency_keys;  migrations/ and migrate.py bring a database up to them
documents.py     a document and its way UPLOADED → VALIDATED → ENRICHED
idempotency.py   one answer per Idempotency-Key
events.py        what is announced
service.py       DocumentService: every method is one transaction
topology.py      exchange, queues and routes on RabbitMQ
relay.py         the relay inside the service; pillarbox.toml is the same for one beside it
consumers/       validation-service and enrichment-service
api/             HTTP
health.py        UP or DOWN
commands.py      python -m apps.ingestion migrate | serve | validate | enrich
demo/            python -m apps.ingestion.demo
"""
