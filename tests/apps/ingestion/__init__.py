"""The ingestion service as processes, over HTTP, SQL and a broker."""
