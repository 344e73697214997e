"""A shop with FastAPI, async SQLAlchemy, PostgreSQL, RabbitMQ and Alembic."""
