"""The document ingestion service: uploads are stored and announced in one transaction, then validated and enriched.

settings.py      the settings from the environment, validated at the start
database.py      the engine of the business tables, PostgreSQL, MariaDB or SQLite
tables.py        documents, idempotency_keys;  migrations/ and migrate.py bring a database up to them
documents.py     a document and its states UPLOADED → VALIDATED → ENRICHED
idempotency.py   one response per Idempotency-Key
events.py        the events of the service
service.py       DocumentService: every method is one transaction
topology.py      exchange, queues and routes on RabbitMQ
relay.py         the embedded relay; pillarbox.toml configures a separate relay in the same way
consumers/       validation-service and enrichment-service
api/             HTTP
health.py        UP or DOWN
commands.py      python -m apps.ingestion migrate | serve | validate | enrich
demo/            python -m apps.ingestion.demo
"""
